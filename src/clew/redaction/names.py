"""Names of variables and options whose values are secret, and matching of globs.

`docs/reference/redaction.md` lists the names; a test compares the two.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache

PATTERNS = (
    "*TOKEN", "*TOKEN_*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "PASS", "*_PASS",
    "SSHPASS", "*_PWD", "*_KEY", "*API_KEY*", "*APIKEY*", "*ACCESS_KEY*", "*ACCESSKEY*",
    "*PRIVATE_KEY*", "*PRIVATEKEY*", "*ACCOUNT_KEY*", "*AUTH_KEY*", "*ENCRYPTION_KEY*",
    "*LICENSE_KEY*", "*MASTER_KEY*", "*SIGNING_KEY*", "*SSH_KEY*", "*STORAGE_KEY*", "*CREDENTIAL*",
    "*_CREDS", "AUTH", "*_AUTH", "*AUTH_CONFIG*", "*AUTHORIZATION*", "*CONNECTION_STRING*",
    "*WEBHOOK_URL*", "*_COOKIE", "*_DSN", "*_JWT", "*_PAT",
)  # fmt: skip
"""Names of variables that say "secret", in any case."""

EXCEPTIONS = (
    "*_FILE", "*_PATH", "*_DIR", "*_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "*PUBLIC_KEY",
    "SORT_KEY", "PRIMARY_KEY", "PARTITION_KEY",
)  # fmt: skip
"""Names of places of secrets, and of keys that are not secret. The user's patterns take
precedence."""

OPTIONS = (
    "password", "*-password", "passwd", "passphrase", "*-passphrase", "pwd", "secret", "*-secret",
    "secret-key", "secret-access-key", "api-key", "*-api-key", "apikey", "access-key", "auth-key",
    "token", "access-token", "api-token", "auth-token", "bearer-token", "bot-token", "github-token",
    "gitlab-token", "hf-token", "hub-token", "id-token", "identity-token", "job-token",
    "oauth-token", "private-token", "refresh-token", "registration-token", "registry-token",
    "security-token", "service-token", "session-token", "use-auth-token",
)  # fmt: skip
"""Options of a command whose values are secret, in any case and with `_` for `-`.

Tokens are listed one by one, because `--eos-token` and `--next-token` are not secret.
"""

QUERY = (
    "auth", "key", "pass", "policy", "pwd", "sig", "signature", "awsaccesskeyid", "key-pair-id",
    "x-*-credential", "x-*-signature", "x-*-token",
)  # fmt: skip
"""Names of a URL's parameters that are secret besides those of `PATTERNS`."""

HEADERS = (
    "authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key",
    "x-auth-token", "private-token", "job-token", "cookie",
)  # fmt: skip
"""HTTP headers whose values are secret."""


def is_secret_variable(name: str, patterns: tuple[str, ...] = ()) -> bool:
    """`patterns`: the user's own."""
    upper = name.upper()
    if _upper_matcher(patterns)(upper):
        return True
    return _upper_matcher(PATTERNS)(upper) and not _upper_matcher(EXCEPTIONS)(upper)


def is_secret_option(name: str, patterns: tuple[str, ...] = ()) -> bool:
    """The name is without its leading dashes; `patterns`: the user's own, as for variables."""
    upper = name.upper().replace("_", "-")
    return _upper_matcher(OPTIONS)(upper) or _upper_matcher(patterns)(upper.replace("-", "_"))


def is_secret_parameter(name: str) -> bool:
    """Whether the parameter of a URL with this name is secret."""
    return any(
        _upper_matcher(patterns)(spelling)
        for spelling in (name.upper(), name.upper().replace("-", "_"))
        for patterns in (PATTERNS, QUERY)
    )


@cache
def _upper_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """A test of upper-case names."""
    return compile_globs(tuple(pattern.upper() for pattern in patterns))


def escape_glob(path: str) -> str:
    """A glob that matches this path alone: `glob.escape`, without importing `glob`."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


@cache
def compile_globs(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """A test whether any of the globs matches, as `fnmatch.fnmatchcase` would.

    Most globs are a text with `*` before it, after it, or both. They are compared as plain text:
    compiling an expression takes longer than most executions use it for.
    """
    exact = set[str]()
    ends, inside, others = list[str](), list[str](), list[str]()
    for glob in globs:
        core = glob.strip("*")
        if not core or any(character in core for character in "*?["):
            others.append(glob)
        elif glob == core:
            exact.add(core)
        elif glob == f"*{core}":
            ends.append(core)
        elif glob == f"*{core}*":
            inside.append(core)
        else:
            others.append(glob)
    suffixes = tuple(ends)
    wild = [(max(_literals(glob), key=len), glob) for glob in others]

    def matches(text: str) -> bool:
        return (
            text in exact
            or text.endswith(suffixes)
            or any(core in text for core in inside)
            or any(part in text and fnmatchcase(text, glob) for part, glob in wild)
        )

    return matches


def _literals(glob: str) -> list[str]:
    """The literal parts of a glob, which every match contains."""
    return [""] if "[" in glob else glob.replace("?", "*").split("*")
