"""Secrets: how they are found and masked, and which files hold them.

Contains the names and patterns of secrets, the list of credential files, and the masking of text
and streams. Never reads the project's files, the graph or the network. Every package above
`settings` may import this one.
"""

from clew.redaction.files import (
    CREDENTIALS,
    find_secret_values,
    list_credential_globs,
    make_credential_check,
    make_withheld_matcher,
    open_readonly,
)
from clew.redaction.masking import MASK, Stream
from clew.redaction.names import compile_globs
from clew.redaction.redactor import SHORTEST, Arguments, Redactor
from clew.redaction.text_scan import mask_text, mask_url

__all__ = [
    "CREDENTIALS",
    "MASK",
    "SHORTEST",
    "Arguments",
    "Redactor",
    "Stream",
    "compile_globs",
    "find_secret_values",
    "list_credential_globs",
    "make_credential_check",
    "make_withheld_matcher",
    "mask_text",
    "mask_url",
    "open_readonly",
]
