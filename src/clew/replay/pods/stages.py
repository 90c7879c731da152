"""What has to be there before each Pod of a plan runs, and what it has to leave.

One stage for each Pod. The stages share fresh volumes and buckets: a stage restores the files that
its Pod found and that are not as it found them. Recorded places are untrusted: a path with `..`
names no file of a volume.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import AncestorPod, FoundVersion
from clew.prov.cluster.facets import PodFacet
from clew.prov.cluster.locators import split_object_locator, split_volume_locator
from clew.replay.pods.pod_graph import object_version

_GIB = 1 << 30


@dataclass(frozen=True)
class Place:
    """A file on a fresh volume, or an object in a fresh bucket. `path`: relative, or the key."""

    locator: Locator
    container: str
    """The name of the fresh claim, or of the recorded bucket."""
    path: bytes
    is_object: bool = False


@dataclass(frozen=True)
class Restored:
    """A recorded content at its place: from the store by its digest, or from the recorded bucket by
    the id of its version."""

    place: Place
    digest: Digest | None
    version: str | None
    size: int
    mode: int
    mtime: int


@dataclass(frozen=True)
class Expected:
    """A content that the Pod left when it was recorded."""

    place: Place
    digest: Digest


@dataclass(frozen=True)
class Stage:
    pod: AncestorPod
    facet: PodFacet
    restore: tuple[Restored, ...]
    directories: tuple[Place, ...]
    expect: tuple[Expected, ...]
    claims: Mapping[str, str]
    """The fresh claim for each that the Pod mounts."""
    config_maps: Mapping[str, Digest]
    """The recorded data of each ConfigMap it had."""
    secrets: frozenset[str]
    """The Secrets that it had."""
    problems: tuple[str, ...] = ()
    unknown: tuple[Locator, ...] = ()
    """What it left, where no digest was recorded."""


@dataclass(frozen=True)
class Stages:
    stages: tuple[Stage, ...]
    claims: Mapping[str, int] = field(default_factory=dict)
    """The fresh claims, with the bytes that they need."""
    buckets: frozenset[str] = frozenset()
    """The recorded buckets."""


def plan_stages(pods: Sequence[AncestorPod], facets: Mapping[Uid, PodFacet]) -> Stages:
    """`pods`: in the order in which they run."""
    there: dict[Locator, str] = {}
    stages: list[Stage] = []
    sizes: dict[str, int] = {}
    for pod in pods:
        stage = _plan_stage(pod, facets.get(pod.uid), there)
        stages.append(stage)
        for claim in stage.claims.values():
            sizes.setdefault(claim, 0)
        for locator, size in _list_versions(pod):
            place = _find_place(locator)
            if place is not None and not place.is_object:
                sizes[place.container] = sizes.get(place.container, 0) + size
    buckets = {bucket for pod in pods for bucket in list_buckets(pod)}
    claims = {name: max(_GIB, 2 * size) for name, size in sizes.items()}
    return Stages(tuple(stages), claims, frozenset(buckets))


def list_buckets(pod: AncestorPod) -> set[str]:
    """The recorded buckets that a Pod used."""
    places = (_find_place(locator) for locator, _ in _list_versions(pod))
    return {place.container for place in places if place is not None and place.is_object}


def claim_name(namespace: str, claim: str, volume: str) -> str:
    """The name of the fresh claim for a recorded volume: a hash, since a prefix before the recorded
    name could exceed the length limit."""
    return f"v-{_hash(namespace, claim, volume)}"


def config_map_name(namespace: str, name: str, digest: str) -> str:
    return f"c-{_hash(namespace, name, digest)}"


def pod_name(number: int, pod: AncestorPod) -> str:
    """Unique, and short enough to be a host name."""
    return f"p{number}-{_hash(pod.uid)[:8]}"


def _plan_stage(pod: AncestorPod, facet: PodFacet | None, there: dict[Locator, str]) -> Stage:
    problems: list[str] = []
    if facet is None:
        problems.append("its spec is not recorded")
        facet = PodFacet(namespace=pod.namespace, name=pod.name)
    restore: dict[Locator, Restored] = {}
    for found in pod.inputs:
        place = _find_place(found.locator)
        if place is None or found.makers == (pod.uid,):
            continue
        names = {name for name in (found.digest, found.source, *found.makers) if name is not None}
        if there.get(found.locator) in names:
            continue  # an earlier stage left it
        digest = found.digest if found.stored else None
        version = object_version(found) if digest is None else None
        if digest is None and version is None:
            problems.append(f"it read an earlier content of {found.locator}, which is not stored")
            continue
        restore[found.locator] = Restored(
            place, digest, version, found.size, found.mode, found.mtime
        )
        there[found.locator] = found.digest or found.source or ""
    expect, unknown, directories = [], [], {}
    for made in pod.outputs:
        place = _find_place(made.locator)
        if place is None:
            continue
        if made.digest is None or not _is_comparable(made.digest, place):
            unknown.append(made.locator)
        else:
            expect.append(Expected(place, made.digest))
        there[made.locator] = made.digest or pod.uid
        parent = place.path.rpartition(b"/")[0]
        if parent and not place.is_object:
            directories[place.container, parent] = Place(made.locator, place.container, parent)
    return Stage(
        pod=pod,
        facet=facet,
        restore=tuple(restore.values()),
        directories=tuple(directories.values()),
        expect=tuple(expect),
        claims=_find_claims(pod, facet),
        config_maps=_find_config_maps(pod.inputs, facet.namespace),
        secrets=_find_secrets(pod.inputs, facet.namespace),
        problems=tuple(problems),
        unknown=tuple(unknown),
    )


def _is_comparable(digest: Digest, place: Place) -> bool:
    """The ETag of an object stands for its bytes."""
    known = ("blake3", "sha256", "etag") if place.is_object else ("blake3", "sha256")
    return digest.partition(":")[0] in known


def _find_place(locator: Locator) -> Place | None:
    """None: not a place that can be restored or compared."""
    if (on_volume := split_volume_locator(locator)) is not None:
        path = on_volume.path.lstrip(b"/")
        if not path or not _is_plain(path):
            return None
        return Place(locator, claim_name(*on_volume[:3]), path)
    if (named := split_object_locator(locator)) is not None:
        return Place(locator, named[0], named[1].encode(), is_object=True)
    return None


def _is_plain(path: bytes) -> bool:
    parts = path.split(b"/")
    return b"\0" not in path and not {b"", b".", b".."} & set(parts)


def _find_claims(pod: AncestorPod, facet: PodFacet) -> dict[str, str]:
    """The claims that the spec names, each with the volume that it was bound to."""
    volumes = {}
    for locator in (*pod.volumes, *(locator for locator, _ in _list_versions(pod))):
        place = split_volume_locator(locator)
        if place is not None and place.namespace == facet.namespace:
            volumes[place.claim] = place.volume
    named = []
    for volume in _list(facet.spec.get("volumes")):
        claim = volume.get("persistentVolumeClaim") if isinstance(volume, dict) else None
        if isinstance(claim, dict) and isinstance(claim.get("claimName"), str):
            named.append(claim["claimName"])
    return {name: claim_name(facet.namespace, name, volumes.get(name, "")) for name in named}


def _list_versions(pod: AncestorPod) -> Iterator[tuple[Locator, int]]:
    """The places, with sizes, of all that a Pod found and left."""
    yield from ((one.locator, one.size) for one in pod.inputs)
    yield from ((one.locator, one.size) for one in pod.outputs)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _find_config_maps(inputs: Iterable[FoundVersion], namespace: str) -> dict[str, Digest]:
    prefix = f"configmap://{namespace}/"
    return {
        found.locator.removeprefix(prefix): found.digest
        for found in inputs
        if found.locator.startswith(prefix) and found.digest is not None and found.stored
    }


def _find_secrets(inputs: Iterable[FoundVersion], namespace: str) -> frozenset[str]:
    prefix = f"secret://{namespace}/"
    return frozenset(
        found.locator.removeprefix(prefix) for found in inputs if found.locator.startswith(prefix)
    )


def _hash(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(errors="replace"), digest_size=8).hexdigest()
