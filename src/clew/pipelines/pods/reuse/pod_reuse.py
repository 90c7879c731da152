"""Whether an earlier task that ran in an image may be reused: the digest of the image, and the
outputs of a Pod in the bucket. `pod_facts` checks what its processes read."""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import msgspec

from clew.errors import ClewError
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import SCHEME, ArtifactStore, StoredObject
from clew.pipelines.pods.task_documents import PodTaskResult
from clew.pipelines.spec.values import Artifact
from clew.prov.queries.pipelines.finished_tasks import FinishedTask
from clew.replay.reuse.reuse_types import ReuseCheck

_PINNED = re.compile(r".+@(sha256:[0-9a-f]{64})")
_REGISTRY = "docker.io/"
_LIBRARY = "docker.io/library/"


class StoredArtifacts:
    """Artifacts in the store, by their content."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store
        self._results: dict[str, PodTaskResult | None] = {}
        self._known: dict[str, Any] = {}

    def identify(self, artifact: Artifact) -> Any:
        """By digests if a task of Clew made it, else by what the store says of its objects. None if
        it is not in the store, or the store does not answer."""
        url = str(artifact["uri"])
        if not url.startswith(SCHEME):
            return None
        if url not in self._known:
            try:
                self._known[url] = self._identify(url)
            except ClewError:  # its task will say what is wrong with the store
                return None
        return self._known[url]

    def _identify(self, url: str) -> Any:
        if (result := self._find_maker(url)) is not None:
            return _list_digests(result, url)
        found = self._store.find(url)
        objects = [found] if found else self._store.list(url)
        return [[one.url[len(url) :], one.size, one.etag] for one in objects] or None

    def _find_maker(self, url: str) -> PodTaskResult | None:
        """The result of the task that made an artifact, as far as the store tells."""
        place, _, name = url.rpartition("/")
        result = self.read_result(place)
        return result if result is not None and name in result.artifacts else None

    def check_outputs(self, done: FinishedTask) -> ReuseCheck:
        """Check that the objects that a task left are unchanged, and that those that it was given
        were what the key of the task says."""
        forged = self._check_inputs(done)
        if forged.why_not is not None:
            return forged
        made = [artifact for several in done.artifacts.values() for artifact in several]
        if not made:
            return ReuseCheck(None)
        try:
            result = self.read_result(done.directory)
            if result is None:
                return ReuseCheck(f"what it left at {done.directory} is gone")
            now = self._store.list(done.directory)
        except ClewError as error:
            return ReuseCheck(f"its outputs cannot be checked: {error.message}")
        return compare_outputs(result, now)

    def read_result(self, place: str) -> PodTaskResult | None:
        if not place.startswith(SCHEME):
            return None
        if place not in self._results:
            url = f"{place}/{task_documents.RESULT}"
            data = self._store.read(url, most=task_documents.MAX_DOCUMENT)
            try:
                found = task_documents.decode_result(data) if data is not None else None
            except msgspec.MsgspecError:  # a file of the user, who may name it so
                found = None
            self._results[place] = found
        return self._results[place]

    def _check_inputs(self, done: FinishedTask) -> ReuseCheck:
        """The key of a task has the digests that `identify` found. A task may leave a directory
        with a file that looks like the result of another one; the helper of the task that used it
        hashed what it really was."""
        try:
            said = {
                f"{url}{suffix}": digest
                for url in done.inputs
                if (result := self._find_maker(url)) is not None
                for suffix, digest in _list_digests(result, url)
            }
            given = self.read_result(done.directory) if said else None
        except ClewError as error:
            return ReuseCheck(f"its inputs cannot be checked: {error.message}")
        return compare_inputs(given, said)


def compare_inputs(given: PodTaskResult | None, said: Mapping[str, str]) -> ReuseCheck:
    """Compare what a task was given with the digests of its inputs, by URL, in its key."""
    hashed = {file.url: file.digest for file in given.inputs} if given else {}
    for url, digest in said.items():
        if hashed.get(url) != digest:
            return ReuseCheck(f"{url}, which it was given, was not what its maker says")
    return ReuseCheck(None)


def _list_digests(result: PodTaskResult, url: str) -> list[list[str]]:
    files = result.artifacts[url.rpartition("/")[2]]
    return [[file.url[len(url) :], file.digest] for file in files]


def compare_outputs(result: PodTaskResult, now: Iterable[StoredObject]) -> ReuseCheck:
    """Compare what a task left with what is there now."""
    there = {one.url: one for one in now}
    files = [file for several in result.artifacts.values() for file in several]
    for file in files:
        found = there.get(file.url)
        if found is None:
            return ReuseCheck(f"{file.url}, which it made, is gone")
        if (found.size, found.etag) != (file.size, file.etag):
            return ReuseCheck(f"{file.url}, which it made, changed")
    return ReuseCheck(None, len(files))


def check_image(
    image: str, then: Container[str], known: Callable[[], Mapping[str, str]]
) -> ReuseCheck:
    """Check that an image is the one that a task ran in. `then`: the digests of that one; `known`:
    the digests of images by name, as the nodes report them."""
    now = find_digest(image, known)
    if now is None:
        return ReuseCheck(f"it is not known which image {image} is now: no node reports its digest")
    if now not in then:
        return ReuseCheck("its image changed")
    return ReuseCheck(None, 1)


def find_digest(image: str, known: Callable[[], Mapping[str, str]]) -> str | None:
    pinned = _PINNED.fullmatch(image)
    return pinned[1] if pinned else known().get(full_name(image))


def read_digests(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The digests of images by name, from the statuses of nodes; names for which nodes report
    different ones are left out."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for image in (node.get("status") or {}).get("images") or ():
            names = [str(name) for name in image.get("names") or ()]
            digests = {match[1] for name in names if (match := _PINNED.fullmatch(name))}
            for name in names:
                if "@" not in name:
                    found.setdefault(full_name(name), set()).update(digests or {""})
    return {name: min(each) for name, each in found.items() if len(each) == 1 and "" not in each}


def full_name(image: str) -> str:
    """The name of an image with its registry and tag, as nodes write it."""
    first, slash, _ = image.partition("/")
    if not slash:
        image = f"{_LIBRARY}{image}"
    elif "." not in first and ":" not in first and first != "localhost":
        image = f"{_REGISTRY}{image}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
