"""Which version of a file is on a volume now, and the numbers of versions within each Pod.

A file that a watched container wrote has the version that this container made. Any other file has
one version for each Pod that found it, because a witness only names versions of its own Pod.
"""

from msgspec import Struct, field

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.events import Content, Version
from clew.witness.volumes.accesses import ContentAnswer, FileState

MAX_PATHS = 200_000
"""Of a Pod, since each takes memory. Accesses to further ones are a gap."""


class CurrentFile(Struct, eq=False):
    """What is known of a path between two changes of its content."""

    generation: int
    handle: bytes = b""
    maker: Uid | None = None
    """The container that wrote it; None: it was there, or something unknown wrote it."""
    made: Version | None = None
    found: dict[Uid, Version] = field(default_factory=dict)
    """Its version in each Pod that found it."""
    readers: set[Uid] = field(default_factory=set)
    """The containers whose use of it is recorded."""
    state: FileState | None = None
    open: bool = False
    """The maker may still be writing."""
    digest: Digest | None = None
    size: int = 0
    stored: bool = False
    requested: bool = False
    """Its content was asked for."""
    base: "CurrentFile | None" = None
    """What was there when its maker began to write, if that may have been kept."""

    def is_as(self, state: FileState | None) -> bool:
        """Whether a file in this state is the same, as far as its size and time tell."""
        mine = self.state
        if mine is None or state is None:
            return False
        return (mine.size, mine.mtime) == (state.size, state.mtime)

    def versions(self) -> list[Version]:
        return [*([self.made] if self.made else []), *self.found.values()]


class VersionCounter:
    """Numbers the versions of a locator within a Pod, from 1.

    A Pod that ran before the agent may have numbers from an earlier agent: it starts at the Unix
    time in seconds, which no count reaches.
    """

    def __init__(self) -> None:
        self._numbers: dict[Uid, dict[Locator, int]] = {}
        self._first: dict[Uid, int] = {}

    def start_late(self, pod: Uid, at: int) -> None:
        self._first.setdefault(pod, at // 1_000_000_000)

    def next(self, pod: Uid, locator: Locator) -> int:
        numbers = self._numbers.setdefault(pod, {})
        number = numbers.get(locator, self._first.get(pod, 0)) + 1
        numbers[locator] = number
        return number

    def has_room(self, pod: Uid, locator: Locator) -> bool:
        numbers = self._numbers.get(pod, {})
        return locator in numbers or len(numbers) < MAX_PATHS

    def restore(self, pod: Uid, numbers: dict[Locator, int]) -> None:
        """Continue the numbers that were given before the agent restarted."""
        self._numbers[pod] = dict(numbers)

    def forget(self, pod: Uid) -> None:
        self._numbers.pop(pod, None)
        self._first.pop(pod, None)


def pod_of(container: Uid) -> Uid:
    """The Pod of a container: `POD/CONTAINER`."""
    return Uid(container.partition("/")[0])


def known_content(file: CurrentFile, version: Version, at: int) -> Content:
    """The content of another version of a file whose digest is known."""
    assert file.digest is not None and file.state is not None
    answer = ContentAnswer(
        digest=file.digest,
        size=file.size,
        mode=file.state.mode,
        mtime=file.state.mtime,
        stored=file.stored,
    )
    return content_event(answer, version, at)


def content_event(answer: ContentAnswer, version: Version, at: int) -> Content:
    return Content(
        execution=pod_of(version.maker),
        n=0,
        at=at,
        version=version,
        digest=answer.digest,
        size=answer.size,
        mode=answer.mode,
        mtime=answer.mtime,
        stored=answer.stored,
    )
