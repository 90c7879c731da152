"""Names of variables and options whose values are secret.

`docs/reference/redaction.md` lists them; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache

PATTERNS = (
    "*TOKEN",
    "*TOKEN_*",
    "*SECRET*",
    "*PASSWORD*",
    "*PASSWD*",
    "*PASSPHRASE*",
    "PASS",
    "*_PASS",
    "SSHPASS",
    "*_PWD",
    "*_KEY",
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
    "*CREDENTIAL*",
    "*_CREDS",
    "AUTH",
    "*_AUTH",
    "*AUTH_CONFIG*",
    "*AUTHORIZATION*",
    "*CONNECTION_STRING*",
    "*WEBHOOK_URL*",
    "*_COOKIE",
    "*_DSN",
    "*_JWT",
    "*_PAT",
)
"""Names of variables that say "secret", in any case."""

EXCEPTIONS = (
    "*_FILE",
    "*_PATH",
    "*_DIR",
    "*_SOCK",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "*PUBLIC_KEY",
    "SORT_KEY",
    "PRIMARY_KEY",
    "PARTITION_KEY",
)
"""Names that only say where a secret lies, and keys of another kind. The user's own patterns take
precedence."""

OPTIONS = (
    "password",
    "*-password",
    "passwd",
    "passphrase",
    "*-passphrase",
    "pwd",
    "secret",
    "*-secret",
    "secret-key",
    "secret-access-key",
    "api-key",
    "*-api-key",
    "apikey",
    "access-key",
    "auth-key",
    "token",
    "access-token",
    "api-token",
    "auth-token",
    "bearer-token",
    "bot-token",
    "github-token",
    "gitlab-token",
    "hf-token",
    "hub-token",
    "id-token",
    "identity-token",
    "job-token",
    "oauth-token",
    "private-token",
    "refresh-token",
    "registration-token",
    "registry-token",
    "security-token",
    "service-token",
    "session-token",
    "use-auth-token",
)
"""Options of a command whose values are secret, in any case and with `_` for `-`.

Tokens are listed one by one: `--eos-token` and `--next-token` are none of these.
"""

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

HEADERS = (
    "authorization",
    "proxy-authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "x-auth-token",
    "private-token",
    "job-token",
    "cookie",
)
"""HTTP headers whose values are secret."""


def is_secret_variable(name: str, patterns: tuple[str, ...] = ()) -> bool:
    """`patterns`: the user's own."""
    upper = name.upper()
    if _matches(upper, patterns):
        return True
    return _matches(upper, PATTERNS) and not _matches(upper, EXCEPTIONS)


def is_secret_option(name: str, patterns: tuple[str, ...] = ()) -> bool:
    """The name is without its leading dashes; `patterns`: the user's own, as for variables."""
    upper = name.upper().replace("_", "-")
    return _matches(upper, OPTIONS) or _matches(upper.replace("-", "_"), patterns)


def is_secret_parameter(name: str) -> bool:
    """Of a URL."""
    return any(
        _matches(spelling, patterns)
        for spelling in (name.upper(), name.upper().replace("-", "_"))
        for patterns in (PATTERNS, QUERY)
    )


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    """`name` is in capitals."""
    return bool(patterns) and _matcher(patterns)(name)


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test for all the patterns. Plain comparisons: to compile them into one expression takes
    longer than most executions need it for."""
    exact, ends, inside, others = set[str](), list[str](), list[str](), list[str]()
    for pattern in (pattern.upper() for pattern in patterns):
        core = pattern.strip("*")
        if any(character in core for character in "*?["):
            others.append(pattern)
        elif pattern == core:
            exact.add(core)
        elif pattern == f"*{core}":
            ends.append(core)
        elif pattern == f"*{core}*":
            inside.append(core)
        else:
            others.append(pattern)

    def matches(name: str) -> bool:
        return (
            name in exact
            or name.endswith(tuple(ends))
            or any(core in name for core in inside)
            or any(fnmatchcase(name, pattern) for pattern in others)
        )

    return matches
