"""What must not enter the record, and how it is kept out.

A variable is secret when its name says so, when the user's own patterns say so, or when its
value is of a kind that is never anything else (an access token, a private key, an address
with a password in it). Such values are replaced by a fixed mask in the recorded environment,
in recorded arguments and in kept output. `docs/reference/redaction.md` is the list in prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import cache
from typing import TypeVar
from urllib.parse import unquote

from blake3 import blake3

from clew.redaction.encodings import encodings
from clew.redaction.stream import MASK, Stream, mask
from clew.settings import without_own

SHORTEST = 6
"""Shorter values are masked in the environment but not searched for in text: `1` is everywhere."""

PATTERNS = (
    "*TOKEN",
    "*TOKEN_*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "PASS",
    "*_PASS",
    "*_PWD",
    "*API_KEY*",
    "*APIKEY*",
    "*ACCESS_KEY*",
    "*ACCESSKEY*",
    "*PRIVATE_KEY*",
    "*PRIVATEKEY*",
    "*ACCOUNT_KEY*",
    "*AUTH_KEY*",
    "*ENCRYPTION_KEY*",
    "*LICENSE_KEY*",
    "*MASTER_KEY*",
    "*SIGNING_KEY*",
    "*SSH_KEY*",
    "*STORAGE_KEY*",
    "KAGGLE_KEY",
    "*CREDENTIAL*",
    "AUTH",
    "*_AUTH",
    "*AUTHORIZATION*",
    "*CONNECTION_STRING*",
    "*WEBHOOK_URL*",
    "*_COOKIE",
    "*_DSN",
    "*_JWT",
    "*_PAT",
)
"""Names that say "secret", whatever their case."""

EXCEPTIONS = ("*_FILE", "*_PATH", "*_DIR", "*_SOCK", "GOOGLE_APPLICATION_CREDENTIALS")
"""Names that only say where a secret lies. The user's own patterns are stronger than these."""

_VALUES = re.compile(
    r"://[^/?#\s:@]*:[^/?#\s@]+@"  # an address with a password
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{30,}"  # GitHub
    r"|\bglpat-[\w-]{20,}"  # GitLab
    r"|\bhf_[A-Za-z0-9]{30,}"  # Hugging Face
    r"|\bsk-[\w-]{30,}"  # OpenAI, Anthropic
    r"|\bxox[abprs]-[\w-]{20,}"  # Slack
    r"|\bA(?:KI|SI)A[A-Z0-9]{16}\b"  # Amazon
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"  # a JSON Web Token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Values that are secret whatever their name."""

_PASSWORD = re.compile(r"://[^/?#\s:@]*:([^/?#\s@]+)@")

QUERY = (
    "auth",
    "key",
    "pass",
    "policy",
    "pwd",
    "sig",
    "signature",
    "awsaccesskeyid",
    "key-pair-id",
    "x-*-credential",
    "x-*-signature",
    "x-*-token",
)
"""Names of a URL's parameters that are secret besides those of `PATTERNS`."""

_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)[^/?#@]*(?:@[^/?#@]*)*@")
_PARAMETER = re.compile(r"(?<=[?&;#])([^?&;#=]+)=([^&;#]*)")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")

_Text = TypeVar("_Text", str, bytes)


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], object]:
    """One expression for all the patterns, made when first asked; names come in capitals."""
    found = "|".join(translate(pattern.upper()) for pattern in patterns)
    return re.compile(found or r"(?!)").match


def mask_url(url: str) -> str:
    """The URL without who asked and what let them in: no userinfo, no secret parameters."""
    if "@" in url:
        url = _USERINFO.sub(rf"\1{MASK}@", url)
    if "=" not in url:
        return url
    secret = _matcher((*PATTERNS, *QUERY))

    def masked(match: re.Match[str]) -> str:
        name = unquote(match[1]).upper()
        hide = match[2] and (secret(name) or secret(name.replace("-", "_")))
        return f"{match[1]}={MASK}" if hide else match[0]

    return _PARAMETER.sub(masked, url)


class Redactor:
    """Knows one environment's secrets; masks them wherever they would be recorded."""

    def __init__(
        self, environ: Mapping[str, str], patterns: Iterable[str] = (), *, key: bytes = b""
    ) -> None:
        """`key`: known to the project alone; with it, two secrets can be told apart later."""
        self._patterns = tuple(patterns)
        self._key = blake3(key).digest() if key else None
        self.names: frozenset[str] = frozenset()
        """The variables whose values are masked."""
        self._judged: dict[tuple[str, str], bool] = {}  # most processes have the same variables
        self._values: set[str] = set()
        self._secrets: list[bytes] = []
        self._masked: dict[tuple[str, str], str] = {}
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """From now on mask the secrets of this environment, too: that of a process which was given
        secrets of its own."""
        self.add_secrets({n: v for n, v in environ.items() if self._secret(n, v)})

    def add_secrets(self, secrets: Mapping[str, str]) -> None:
        """From now on mask these values, whatever their names are: the variables that a user gave
        to a command as secrets. Streams that were made before do not mask them."""
        secrets = {name: value for name, value in secrets.items() if value and value != MASK}
        self.names |= secrets.keys()
        fresh = set(secrets.values()) - self._values
        if not fresh:
            return
        self._values |= fresh
        found = {spelling for value in fresh for spelling in _spellings(value)}
        self._secrets = sorted(found.union(self._secrets), key=lambda text: (-len(text), text))
        self._masked.clear()

    def _secret(self, name: str, value: str) -> bool:
        if not value or value == MASK:
            return False
        judged = self._judged.get((name, value))
        if judged is None:
            upper = name.upper()
            asked, secret, exception = map(_matcher, (self._patterns, PATTERNS, EXCEPTIONS))
            named = asked(upper) or (secret(upper) and not exception(upper))
            judged = self._judged[name, value] = bool(named or _VALUES.search(value))
        return judged

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables, with a mask in place of each secret value, and without Clew's own."""
        return {n: self._variable(n, v) for n, v in without_own(variables).items()}

    def _variable(self, name: str, value: str) -> str:
        masked = self._masked.get((name, value))
        if masked is None:
            hide = name in self.names or self._secret(name, value)
            masked = self._masked[name, value] = MASK if hide else self.text(value)
        return masked

    def seals(self, variables: Mapping[str, str]) -> dict[str, str]:
        """For each variable of which something is masked, what tells whether it is the same another
        time, to who has the key; to others it tells nothing."""
        if self._key is None:
            return {}
        masked = (name for name, value in self.environment(variables).items() if MASK in value)
        return {
            name: blake3(f"{name}\0{variables[name]}".encode(), key=self._key).hexdigest(length=16)
            for name in masked
        }

    def text(self, text: _Text) -> _Text:
        """The text with every secret value in it masked."""
        if not self._secrets:
            return text
        if isinstance(text, bytes):
            return mask(self._secrets, text)
        masked = mask(self._secrets, text.encode(errors="surrogateescape"))
        return masked.decode(errors="surrogateescape")

    def argument(self, word: str) -> str:
        """A word of a command: also the URLs in it lose what is secret about them."""
        masked = self.text(word)
        return _URL.sub(lambda url: mask_url(url[0]), masked) if "://" in masked else masked

    def url(self, url: str) -> str:
        return mask_url(self.text(url))

    def stream(self) -> Stream:
        """A masker for output that arrives in pieces."""
        return Stream(self._secrets)


def _spellings(value: str) -> Iterable[bytes]:
    """What to search for in text: the value, and the password in it, in every encoding."""
    whole = {value, value.strip()}
    for match in _PASSWORD.finditer(value):
        whole |= {match[1], unquote(match[1])}
    for text in whole:
        if len(text.encode(errors="surrogateescape")) >= SHORTEST:
            yield from encodings(text)
