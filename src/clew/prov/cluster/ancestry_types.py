"""The Pods that a target depends on, as plain data: what a plan of a reproduction is made from.

Queries fill these values, and the plan decides with them, so that the decision needs no database.
"""

from msgspec import Struct

from clew.documents.ids import Digest, Locator, Uid


class Touch(Struct, frozen=True, kw_only=True):
    """A Pod was changed by hand while it ran: what it did then is in no record."""

    how: str  # exec, attach, portforward, ephemeralcontainers, edit
    by: str
    at: int


class FoundVersion(Struct, frozen=True, kw_only=True, gc=False):
    """A version that a Pod read, or the target itself."""

    locator: Locator
    """A file, an object, a ConfigMap, a Secret, an image; or a volume as a whole."""
    makers: tuple[Uid, ...] = ()
    """The Pods that made it. More than one: each may have. Empty: no Pod of the record made it; of
    a volume as a whole, its writers (`VolumeWriters`) made it."""
    digest: Digest | None = None
    stored: bool = False
    """Whether the store has its bytes."""
    size: int = 0
    mode: int = 0o644
    mtime: int = 0
    source: str | None = None
    """The `versionId=…` or `etag=…` of an object."""
    inferred: bool = False


class MadeVersion(Struct, frozen=True, kw_only=True, gc=False):
    """The version of a file or object that a Pod left."""

    locator: Locator
    digest: Digest | None = None
    stored: bool = False
    size: int = 0
    source: str | None = None


class VolumeWriters(Struct, frozen=True, kw_only=True):
    """The Pods that had a volume writable."""

    locator: Locator
    writers: tuple[tuple[Uid, int], ...] = ()
    """With the time of their start, in that order."""


class PeerPod(Struct, frozen=True, kw_only=True):
    """A Pod that may have answered, and what ran in it."""

    uid: Uid
    namespace: str
    name: str
    images: dict[str, str] = {}
    """As those of `AncestorPod`."""
    config_maps: dict[str, Digest] = {}
    """The digests of those that it had, by name."""


class Peer(Struct, frozen=True, kw_only=True):
    """What a Pod connected to."""

    locator: Locator
    """`service://…`, `pod://NAMESPACE/NAME`, `https://…`; `ip://…` if nothing else is known."""
    pods: tuple[PeerPod, ...] = ()


class AncestorPod(Struct, frozen=True, kw_only=True):
    """A Pod that ran, and what the witnesses know of it."""

    uid: Uid
    namespace: str
    name: str
    started: int
    ended: int | None = None
    status: int | None = None
    node: str | None = None
    images: dict[str, str] = {}
    """The digest of the image of each container, by the name of the container: `sha256:…`."""
    inputs: tuple[FoundVersion, ...] = ()
    """Of a Pod that no plan runs, objects only, and no outputs."""
    outputs: tuple[MadeVersion, ...] = ()
    volumes: tuple[Locator, ...] = ()
    """The whole volumes that it could read. If files are not told apart, it depends on all their
    writers that started before it ended."""
    touched: tuple[Touch, ...] = ()
    peers: tuple[Peer, ...] = ()


class Ancestry(Struct, frozen=True, kw_only=True):
    """What a target was made by."""

    target: str
    wanted: tuple[FoundVersion, ...]
    """The version that the target names; of a Pod, every version it left."""
    pods: tuple[AncestorPod, ...]
    """Every ancestor, also those by volume only, and the makers of the target; a Pod that is the
    target is among them."""
    volumes: tuple[VolumeWriters, ...] = ()
    """Of every volume that one of the Pods, or the target, names."""
    wanted_volumes: tuple[Locator, ...] = ()
    """The volumes of the target, if it is on one."""
