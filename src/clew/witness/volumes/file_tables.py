"""What is known of the files of each volume, also while no container has it.

A Pod often continues what another one left. Nothing is lost between them as long as only watched
containers can have written: then what a file held before is known. Else it is forgotten, and a gap
says so when it matters.
"""

from collections.abc import Collection

from clew.witness.volumes.file_versions import CurrentFile
from clew.witness.volumes.volumes import Volume

CLOCK_STEP = 10_000_000
"""Nanoseconds by which the times of files may be behind the clock."""
MAX_KEPT_FILES = 200_000
"""Of all volumes together that no container has; the volumes that were left first go first."""


class FileTables:
    def __init__(self, *, keep: bool) -> None:
        """`keep`: whether all containers are watched at the same paths; else one may write what
        is only seen in another one."""
        self.volumes: dict[str, Volume] = {}
        """Those that are watched."""
        self.since: dict[str, int] = {}
        """When each began to be watched. What is older was there before, or is in `files`."""
        self.files: dict[str, dict[bytes, CurrentFile]] = {}
        self._keep = keep
        self._kept: dict[str, dict[bytes, CurrentFile]] = {}
        self._exposed: set[str] = set()
        """Watched volumes on which something was written unseen."""

    def watch(self, volume: Volume, at: int) -> None:
        if volume.key not in self.volumes:
            self.volumes[volume.key] = volume
            self.since[volume.key] = at - CLOCK_STEP
            self.files[volume.key] = self._kept.pop(volume.key, {})

    def unwatch(self, key: str) -> None:
        """No container has the volume any more."""
        volume = self.volumes.pop(key, None)
        if volume is None:
            return
        del self.since[key]
        files = self.files.pop(key)
        if self._keep and volume.local and key not in self._exposed:
            self._kept[key] = {path: file for path, file in files.items() if not file.open}
            for file in self._kept[key].values():
                _forget_readers(file)
            while sum(map(len, self._kept.values())) > MAX_KEPT_FILES:
                del self._kept[next(iter(self._kept))]
        self._exposed.discard(key)

    def expose(self, keys: Collection[str] | None) -> None:
        """Something that is not watched can have written these volumes; None: any volume."""
        for key in list(self._kept) if keys is None else keys:
            self._kept.pop(key, None)
        self._exposed.update(self.volumes if keys is None else self.volumes.keys() & set(keys))


def _forget_readers(file: CurrentFile) -> None:
    """All of them ended. A container of the same Pod may follow: the last version is its own."""
    file.readers.clear()
    if file.digest is not None:
        for pod in list(file.found)[:-1]:
            del file.found[pod]
