"""What each Pod needs and makes, as candidates of a plan.

A content is named by its digest and place, so that a Pod that made the same bytes there may take
the place of another; without a digest by the Pod that made it. What is on a volume as a whole is
needed of every earlier writer of the volume: a content for each number of writers, made of the one
before and of that writer, so that ten thousand Pods on one volume have as many edges.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import AncestorPod, Ancestry, FoundVersion, MadeVersion
from clew.replay.repeat.recreate_plan import Candidate

TARGET = "the target"
_RESTORED = ("pvc://", "s3://", "configmap://")
"""Places whose bytes can be restored. Images and Secrets are recorded by name only, and what a peer
answers is not recorded."""


class PodGraph:
    """The Pods, numbered in the order of their start, and the versions they read and made."""

    def __init__(self, ancestry: Ancestry) -> None:
        self.pods = sorted(ancestry.pods, key=lambda pod: (pod.started, pod.uid))
        self.wanted = ancestry.wanted
        self._writers = {
            one.locator: sorted((at, uid) for uid, at in one.writers) for one in ancestry.volumes
        }
        self._wanted_volumes = ancestry.wanted_volumes
        self._made = {
            (pod.uid, made.locator): made.digest for pod in self.pods for made in pod.outputs
        }
        self._stored = set(self._find_stored())
        self._candidates: list[Candidate] = []
        self._makers: dict[str, list[int]] = {}
        makes = self._find_made_keys()
        for pod in self.pods:
            needs = {key for found in pod.inputs for key in self.list_needs(found, pod)}
            self._add(needs, makes.get(pod.uid, set()) | {all_of(pod.uid)})
        for volume, writers in self._writers.items():
            for count, (_, uid) in enumerate(writers, 1):
                before = {_state(volume, count - 1)} if count > 1 else set()
                self._add({all_of(uid)} | before, {_state(volume, count)})

    def find_producers(self, key: str) -> Iterable[Candidate]:
        return (self._candidates[number] for number in self._makers.get(key, ()))

    def add_target(self, also: Iterable[Uid]) -> None:
        """Add the candidate that stands for the target; `also`: Pods that it needs to run."""
        needs = {key for found in self.wanted for key in self.list_needs(found, None)}
        if TARGET in self._makers:
            del self._makers[TARGET]
        self._add(needs | set(map(all_of, also)), {TARGET})

    def list_needs(self, found: FoundVersion, reader: AncestorPod | None) -> list[str]:
        """The contents that must be made before `reader` (None: the target) can find a version."""
        own = reader is not None and found.makers == (reader.uid,)
        if own or self.is_stored(found) or not is_restored(found):
            return []
        if found.locator in self._writers:
            count = self._count_writers(found.locator, reader)
            return [_state(found.locator, count)] if count else []
        if len(found.makers) == 1:
            return [self._key(found.makers[0], found)]
        if found.makers:
            return [
                all_of(maker) for maker in found.makers if reader is None or maker != reader.uid
            ]
        return [f"{found.digest or 'unknown'} at {found.locator}"]

    def is_stored(self, found: FoundVersion) -> bool:
        """Whether its bytes are in the store, or in a bucket that keeps old versions."""
        if found.stored or (self._digest(found) or "") in self._stored:
            return True
        return object_version(found) is not None

    def list_made_keys(self, pod: AncestorPod) -> dict[str, Locator]:
        """The contents that a Pod left, and where."""
        return {self._key(pod.uid, made): made.locator for made in pod.outputs}

    def list_companions(self, pod: AncestorPod) -> Iterator[Uid]:
        """Writers that started later than a Pod which may have found what they wrote."""
        for found in pod.inputs:
            writers = self._writers.get(found.locator)
            if writers and pod.ended is not None and not self.is_stored(found):
                begin, end = (bisect_left(writers, (at, "")) for at in (pod.started, pod.ended))
                yield from (uid for _, uid in writers[begin:end] if uid != pod.uid)

    def _count_writers(self, volume: Locator, reader: AncestorPod | None) -> int:
        """How many started before the reader. Those that started while it ran are companions: were
        they needed first, two Pods that ran side by side would wait for each other."""
        writers = self._writers[volume]
        return len(writers) if reader is None else bisect_left(writers, (reader.started, ""))

    def _find_stored(self) -> Iterator[Digest]:
        for versions in (self.wanted, *(pod.inputs + pod.outputs for pod in self.pods)):
            for version in versions:
                if version.stored and version.digest is not None:
                    yield version.digest

    def _find_made_keys(self) -> dict[Uid, set[str]]:
        """By Pod, the contents that it left, and those that others read before it replaced them."""
        makes: dict[Uid, set[str]] = {}
        for pod in self.pods:
            makes.setdefault(pod.uid, set()).update(self.list_made_keys(pod))
        for found in (*self.wanted, *(found for pod in self.pods for found in pod.inputs)):
            if len(found.makers) == 1:
                makes.setdefault(found.makers[0], set()).add(self._key(found.makers[0], found))
        return makes

    def _key(self, maker: Uid, version: FoundVersion | MadeVersion) -> str:
        digest = version.digest or self._made.get((maker, version.locator))
        return f"{digest or maker} at {version.locator}"

    def _digest(self, found: FoundVersion) -> Digest | None:
        if found.digest is None and len(found.makers) == 1:
            return self._made.get((found.makers[0], found.locator))
        return found.digest

    def _add(self, needs: set[str], makes: set[str]) -> None:
        number = len(self._candidates)
        for key in makes:
            self._makers.setdefault(key, []).append(number)
        made = frozenset(map(Digest, makes))
        self._candidates.append(Candidate(number, frozenset(needs), made))


def is_restored(found: FoundVersion) -> bool:
    """Whether a Pod that runs again finds it: made again, or restored."""
    return found.locator.startswith(_RESTORED)


def object_version(found: FoundVersion) -> str | None:
    """The id by which a bucket keeps this version of an object."""
    if found.source is None or not found.locator.startswith("s3://"):
        return None
    name, _, version = found.source.partition("=")
    if name != "versionId":
        return None
    return version if version not in ("", "null") else None


def all_of(uid: Uid) -> str:
    """The content that stands for everything that a Pod left."""
    return f"all {uid}"


def _state(volume: Locator, count: int) -> str:
    return f"the first {count} writers of {volume}"
