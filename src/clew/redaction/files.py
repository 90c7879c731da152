"""Credential files: only their digests are recorded, not their bytes.

`docs/reference/redaction.md` lists them, and a test compares the two; `record.credentials` in a
project's `config.toml` replaces the list.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from clew.redaction.names import (
    PATTERNS,
    compile_globs,
    escape_glob,
    is_secret_option,
    is_secret_variable,
)
from clew.redaction.text_scan import find_in_text

CREDENTIALS = (
    # SSH, GPG, passwords, Kerberos
    "*/.ssh/id_rsa", "*/.ssh/id_dsa", "*/.ssh/id_ecdsa", "*/.ssh/id_ecdsa_sk", "*/.ssh/id_ed25519",
    "*/.ssh/id_ed25519_sk", "*/.ssh/identity", "*/.ssh/*_rsa", "*/.ssh/*_ecdsa", "*/.ssh/*_ed25519",
    "*/.ssh/*.key", "*/.ssh/*.pem", "/etc/ssh/ssh_host_*_key", "*/clew/id_ed25519",
    "*/.gnupg/private-keys-v1.d/*", "*/.gnupg/secring.gpg", "*/.password-store/*", "*/keyrings/*",
    "*/python_keyring/*", "*.kdbx", "*/sops/age/keys.txt", "*.keytab", "/etc/shadow",
    "/etc/gshadow",
    # the network and databases
    "*/.netrc", "*/_netrc", "*/.pgpass", "*/.my.cnf", "*/.mylogin.cnf", "*/.databrickscfg",
    "*/.snowflake/connections.toml", "*/.dbt/profiles.yml",
    # a project's own
    "*/.env", "*/.env.local", "*/.env.*.local", "*/.env.development", "*/.env.production",
    "*/.env.staging", "*/.env.test", "*/.envrc",
    # clouds
    "*/.aws/credentials", "*/.aws/cli/cache/*", "*/.aws/login/cache/*", "*/.aws/sso/cache/*",
    "*/gcloud/access_tokens.db", "*/gcloud/application_default_credentials.json",
    "*/gcloud/credentials.db", "*/gcloud/legacy_credentials/*", "*/.boto",
    "*/.azure/accessTokens.json", "*/.azure/msal_token_cache.*",
    "*/.azure/service_principal_entries.*", "*/.oci/*.pem", "*/.s3cfg", "*/.mc/config.json",
    "*/rclone.conf", "*/.vault-token", "*/.terraform.d/credentials.tfrc.json", "*/.terraformrc",
    "*/.pulumi/credentials.json", "*/doctl/config.yaml", "*/hcloud/cli.toml", "*/.fly/config.yml",
    "*/ngrok.yml",
    # Kubernetes and containers
    "*/.kube/config", "*/kubeconfig", "*.kubeconfig", "*/kubeconfig.yaml", "*/kubeconfig.yml",
    "/etc/kubernetes/*.conf", "/etc/rancher/k3s/k3s.yaml", "/run/secrets/*", "/var/run/secrets/*",
    "*/.docker/config.json", "*/.dockercfg", "*/containers/auth.json",
    # code and package registries
    "*/.git-credentials", "*/git/credentials", "*/gh/hosts.yml", "*/glab-cli/config.yml",
    "*/.npmrc", "*/.yarnrc.yml", "*/.pypirc", "*/.cargo/credentials", "*/.cargo/credentials.toml",
    "*/.gem/credentials", "*/.m2/settings-security.xml", "*/composer/auth.json",
    "*/.composer/auth.json",
    # machine learning
    "*/huggingface/token", "*/huggingface/stored_tokens", "*/.huggingface/token", "*/kaggle.json",
    "*/.kaggle/access_token", "*/.comet.config", "*/.modal.toml", "*/jupyter/runtime/*",
    # browsers
    "*/Cookies", "*/Login Data", "*/cookies.sqlite", "*/cookies.txt", "*/logins.json", "*/key4.db",
    # histories of shells
    "*/.bash_history", "*/.zsh_history", "*/fish_history", "*/.python_history", "*/.psql_history",
    "*/.mysql_history", "*/.rediscli_history",
)  # fmt: skip
"""Globs of the files, matched as those of `record.exclude`."""

VARIABLES = (
    "BOTO_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC", "NPM_CONFIG_USERCONFIG",
    "PGPASSFILE", "REGISTRY_AUTH_FILE",
)  # fmt: skip
"""Variables that name credential files, besides secret ones that end in `_FILE`."""

_WHOLE = 4096
"""Characters: the whole text of a shorter file is searched for in output."""
_LINE = (
    r"""(?m)^[ \t]*(?:export[ \t]+)?"?([\w.-]+)"?([ \t]*[=:][ \t]*|[ \t]+)"""
    r"""["']?(.*?)["']?,?[ \t\r]*$"""
)
"""`NAME=VALUE`, `name: value`, `name value`."""
_ORDINARY = r"[A-Za-z]{0,31}|[\d.:]*|[~.]{0,2}/.*|[a-z+]+://.*"
"""Values that are secret only if their names say so: words, numbers, paths and addresses."""
_LONG = 32
"""Characters: a longer value without a space counts as a key, whatever its name."""
_SSH_DIRECTORY = "/.ssh/"
"""Here, files that begin like a private key are credentials, whatever their names."""
_PRIVATE_KEY_BYTES = 64


def _is_private_key(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes is an SSH key: OpenSSH's, PEM or PuTTY's."""
    return (
        beginning.startswith(b"-----BEGIN ") and b"PRIVATE KEY-----" in beginning
    ) or beginning.startswith(b"PuTTY-User-Key-File-")


def open_readonly(path: str | bytes) -> int:
    """Open a file that may be a pipe or a terminal, without waiting for it."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


@cache
def make_credential_check(globs: tuple[str, ...]) -> Callable[[str, Callable[[], int]], bool]:
    """A test whether a file is a credential, given its path and a function that opens it: by its
    path or, in an SSH directory, by its first bytes, since keys may have any name."""
    is_named = compile_globs(globs)
    finds_keys = any(_SSH_DIRECTORY in glob for glob in globs)

    def check(path: str, open_file: Callable[[], int]) -> bool:
        if is_named(path):
            return True
        if not finds_keys or _SSH_DIRECTORY not in path:
            return False
        try:
            with open(open_file(), "rb") as file:
                return _is_private_key(file.read(_PRIVATE_KEY_BYTES))
        except OSError:
            return False

    return check


def make_withheld_matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """A test whether a file without stored bytes is a credential, by its path. In an SSH directory
    only private keys are not stored."""
    return compile_globs((*globs, f"*{_SSH_DIRECTORY}*") if globs else ())


def list_credential_globs(
    credentials: tuple[str, ...], environ: Mapping[str, str], cwd: str
) -> tuple[str, ...]:
    """Globs of a command's credential files; none if the project's list is empty."""
    return (*credentials, *list_named_credentials(environ, cwd)) if credentials else ()


def find_secret_values(text: str) -> Iterator[str]:
    """The values of a credential file to mask in output: its whole text, if it is short, and each
    value that may be secret."""
    whole = text.strip()
    if len(whole) <= _WHOLE:
        yield whole
    for found in find_in_text(text):
        if found.name:
            yield text[found.start : found.end]
    for name, separator, value in re.findall(_LINE, text):
        named = is_secret_variable(name) or is_secret_option(name)
        long = len(value) >= _LONG and " " not in value
        if (named or long or "=" in separator) and (named or not re.fullmatch(_ORDINARY, value)):
            yield value


def list_named_credentials(environ: Mapping[str, str], cwd: str) -> tuple[str, ...]:
    """Globs of the credential files that variables name."""
    paths = set[str]()
    for name, value in environ.items():
        upper = name.upper()
        if upper in VARIABLES or (upper.endswith("_FILE") and compile_globs(PATTERNS)(upper[:-5])):
            for path in value.split(os.pathsep) if upper == "KUBECONFIG" else [value]:
                if path:
                    absolute = os.path.join(cwd, path)
                    paths |= {os.path.normpath(absolute), os.path.realpath(absolute)}
    return tuple(map(escape_glob, sorted(paths)))
