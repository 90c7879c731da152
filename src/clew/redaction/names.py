"""Names of variables and options whose values are secret.

`docs/reference/redaction.md` lists them; a test compares the two.
"""

from collections.abc import Callable
from functools import cache

from clew.redaction.globs import matcher

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
    if _in_capitals(patterns)(upper):
        return True
    return _in_capitals(PATTERNS)(upper) and not _in_capitals(EXCEPTIONS)(upper)


def is_secret_option(name: str, patterns: tuple[str, ...] = ()) -> bool:
    """The name is without its leading dashes; `patterns`: the user's own, as for variables."""
    upper = name.upper().replace("_", "-")
    return _in_capitals(OPTIONS)(upper) or _in_capitals(patterns)(upper.replace("-", "_"))


def is_secret_parameter(name: str) -> bool:
    """Of a URL."""
    return any(
        _in_capitals(patterns)(spelling)
        for spelling in (name.upper(), name.upper().replace("-", "_"))
        for patterns in (PATTERNS, QUERY)
    )


@cache
def _in_capitals(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test of names in capitals."""
    return matcher(tuple(pattern.upper() for pattern in patterns))
