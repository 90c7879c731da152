"""Secrets: how they are found and masked, and which files hold them.

Contains the names and patterns of secrets, the list of credential files, and the masking of text
and streams. Never reads the project's files, the graph or the network. Every package above
`settings` may import this one.
"""

from clew.redaction.files import (
    CREDENTIALS,
    credential_check,
    credential_globs,
    open_readonly,
    secret_values,
    withheld_matcher,
)
from clew.redaction.masking import MASK, Stream
from clew.redaction.names import matcher
from clew.redaction.redactor import SHORTEST, Arguments, Redactor
from clew.redaction.text_scan import mask_text, mask_url

__all__ = [
    "CREDENTIALS",
    "MASK",
    "SHORTEST",
    "Arguments",
    "Redactor",
    "Stream",
    "credential_check",
    "credential_globs",
    "mask_text",
    "mask_url",
    "matcher",
    "open_readonly",
    "secret_values",
    "withheld_matcher",
]
