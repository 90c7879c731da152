"""The targets of the proxy, by kind, namespace and name, and their addresses.

A resolver finds the address of a target: from a file (here), from the back end that started it
(`local_targets`), or from its Service on a cluster (`cluster_targets`).
"""

import re
import tomllib
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from clew.errors import UsageError

PREFIXES = {
    "notebook": "notebook",
    "tensorboard": "tensorboard",
    "pvcviewer": "pvcviewer",
    "pvcviewers": "pvcviewer",
}
"""The kind for the first segment of a path; Kubeflow writes viewers both ways."""
KINDS = {"notebook": "Notebook", "tensorboard": "Tensorboard", "pvcviewer": "PVCViewer"}
"""The kind of the resource behind each kind of target."""
_NAME = rb"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_PATH = re.compile(rb"/([a-zA-Z0-9][-\w.~]*)/(%s)/(%s)(?=/|$)" % (_NAME, _NAME))
_ADDRESS = re.compile(r"(?:http://)?(\[[0-9a-fA-F:.]+\]|[^/:\[\]]+):(\d{1,5})/?")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True)
class TargetKey:
    """The name of one target."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Target:
    """The address of a target, and how its requests are changed."""

    host: str
    port: int
    rewrite: str | None = None
    """Replaces the prefix of the path; None: the path stays unchanged."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Set on every request; values of the client are replaced."""
    timeout: float = 300.0
    """Seconds until the response must begin."""
    base: str | None = None
    """The first segment of its paths, if a user chose another one."""


class Resolver(Protocol):
    custom_prefixes: bool
    """Whether a user may choose the first segment of a viewer's paths."""
    hint: str
    """How to list the targets."""

    async def find(self, key: TargetKey) -> Target | None:
        """The current address of a target; None if it does not exist."""

    async def explain(self, key: TargetKey) -> str | None:
        """Why a target does not respond, in a sentence for its user; None: that is unknown."""


def match_path(
    path: bytes, own_prefixes: Container[str] | None = None
) -> tuple[TargetKey, bytes] | None:
    """The target of a raw request path, and the prefix of the path; None if it has no target.

    `own_prefixes`: the first segments of the server's own paths. Any other may be that of a viewer:
    only one segment can be chosen, and the namespace follows, so that no user can take over the
    path of another. None: users cannot choose.
    """
    found = _PATH.match(path)
    if found is None:
        return None
    first, namespace, name = (part.decode() for part in found.groups())
    kind = PREFIXES.get(first)
    if kind is None and own_prefixes is not None and first not in own_prefixes:
        kind = "pvcviewer"
    return None if kind is None else (TargetKey(kind, namespace, name), found[0])


def serves_prefix(prefix: bytes, target: Target) -> bool:
    """Whether the paths of the target begin with this prefix."""
    first = prefix.split(b"/")[1].decode()
    return first in PREFIXES or first == target.base


def upstream_path(path: bytes, prefix: bytes, rewrite: str | None) -> bytes:
    """The path to request from the target. As with Istio, the match is replaced with its slash."""
    if rewrite is None:
        return path
    rest = path[len(prefix) + 1 :]
    return b"/" + rewrite.encode().strip(b"/") + (b"/" if rewrite.strip("/") else b"") + rest


class TargetFile:
    """The targets of one machine, from a file that is read again when it changes.

    ["notebook/me/first"]
    address = "127.0.0.1:8888"
    """

    custom_prefixes = False
    hint = "clew server --targets FILE names those of this machine"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._targets: dict[str, Target] = {}
        self._read()

    async def find(self, key: TargetKey) -> Target | None:
        self._read()
        return self._targets.get(str(key))

    async def explain(self, key: TargetKey) -> str | None:
        """It knows addresses only."""
        return None

    def _read(self) -> None:
        try:
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen == self._seen:
                return
            text = self._path.read_text()
        except OSError as error:
            raise UsageError(f"{self._path} cannot be read: {error.strerror}") from error
        self._targets = parse_targets(text, str(self._path))
        self._seen = seen


def parse_targets(text: str, where: str) -> dict[str, Target]:
    """Parse the text of such a file."""
    try:
        return {
            _parse_key(name): _parse_target(given) for name, given in tomllib.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        hint = '["notebook/NAMESPACE/NAME"] and address = "HOST:PORT"'
        raise UsageError(f"{where}: {error}", hint=hint) from error


def _parse_key(name: str) -> str:
    found = match_path(f"/{name}".encode())
    if found is None or len(found[1]) != len(name) + 1:
        raise ValueError(f"{name} is not a valid target name")
    return str(found[0])


def _parse_target(given: Mapping[str, Any]) -> Target:
    unknown = given.keys() - {"address", "rewrite", "headers", "timeout"}
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
    address = _ADDRESS.fullmatch(str(given.get("address", "")))
    if address is None or not 0 < int(address[2]) < 1 << 16:
        raise ValueError("address must be HOST:PORT")
    rewrite = given.get("rewrite")
    return Target(
        host=address[1].strip("[]"),
        port=int(address[2]),
        rewrite=None if rewrite is None else str(rewrite),
        headers=dict(map(check_header, given.get("headers", {}).items())),
        timeout=float(given.get("timeout", Target.timeout)),
    )


def check_header(given: tuple[str, Any]) -> tuple[str, str]:
    """Return a header's name and value, or raise ValueError if they are not valid."""
    name, value = given[0], str(given[1])
    if not _HEADER.fullmatch(name) or not value.isprintable() or not value.isascii():
        raise ValueError(f"{name} cannot be a header")
    return name, value
