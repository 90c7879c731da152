"""The numbers of versions that were given to Pods, and the containers that are watched, on disk.

A restarted agent must not give the number of a version to another one. The journal is written
before the events that use the numbers, so a crash skips numbers and repeats none. And it must tell
of which containers an agent declared that it watches them, but not their end.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import msgspec

from clew.atomic_file import write_atomically
from clew.documents.ids import Locator, Uid
from clew.prov.cluster.watch_declarations import WATCH_KINDS, WATCHED
from clew.prov.events import AnyEvent, Generated, Invalidated, Looked, Used
from clew.store.errors import from_os

_Entry = tuple[Uid, Locator, int]
"""A Pod and a path with its number; or a container and a volume, and whether it is watched."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Entry).decode
MAX_LINE = 1 << 17


class VersionJournal:
    """The journal of one agent. Opening it forgets nothing; `compact` does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers: dict[tuple[Uid, Locator], int] = {}
        self._watched: set[tuple[Uid, Locator]] = set()
        self._read()
        self._file = self._open()

    def pods(self) -> set[Uid]:
        return {pod for pod, _ in self._numbers}

    def numbers(self, pod: Uid) -> dict[Locator, int]:
        """The highest number of each locator of a Pod."""
        return {locator: number for (one, locator), number in self._numbers.items() if one == pod}

    def watched(self) -> list[tuple[Uid, Locator]]:
        """The containers and volumes that are watched, as the events say that were added."""
        return sorted(self._watched)

    def add(self, pods: Iterable[Uid], events: Iterable[AnyEvent]) -> None:
        """Keep the Pods, and the numbers that the events use. It survives a power cut."""
        lines = []
        for pod in pods:
            if (pod, Locator("")) not in self._numbers:
                self._numbers[pod, Locator("")] = 0
                lines.append(_encode((pod, "", 0)))
        for event in events:
            if isinstance(event, Used | Generated | Invalidated):
                key = event.execution, event.version.locator
                if event.version.ordinal > self._numbers.get(key, 0):
                    self._numbers[key] = event.version.ordinal
                    lines.append(_encode((*key, event.version.ordinal)))
            elif isinstance(event, Looked) and event.kind in WATCH_KINDS:
                entry = event.activity, event.locator, int(event.kind == WATCHED)
                if self._note_watch(*entry):
                    lines.append(_encode(entry))
        if lines:
            try:
                self._file.write(b"\n".join(lines) + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise from_os(error, doing=f"write {self._path}") from error

    def compact(self, present: set[Uid]) -> None:
        """Forget the Pods that are not present."""
        self._numbers = {key: n for key, n in self._numbers.items() if key[0] in present}
        entries = [(pod, locator, number) for (pod, locator), number in self._numbers.items()]
        entries += [(container, volume, 1) for container, volume in self._watched]
        lines = b"".join(_encode(entry) + b"\n" for entry in entries)
        try:
            write_atomically(self._path, lines, sync=True)
        except OSError as error:
            raise from_os(error, doing=f"write {self._path}") from error
        self._file.close()
        self._file = self._open()

    def close(self) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        try:
            return open(self._path, "ab")
        except OSError as error:
            raise from_os(error, doing=f"write {self._path}") from error

    def _note_watch(self, container: Uid, volume: Locator, watched: int) -> bool:
        """Whether this was not known."""
        before = len(self._watched)
        if watched:
            self._watched.add((container, volume))
        else:
            self._watched.discard((container, volume))
        return len(self._watched) != before

    def _read(self) -> None:
        """A crash may cut the last line: its events were not kept either."""
        try:
            with open(self._path, "rb") as file:
                while line := file.readline(MAX_LINE):
                    try:
                        pod, locator, number = _decode(line)
                    except msgspec.DecodeError:
                        continue
                    if "/" in pod:
                        self._note_watch(pod, locator, number)
                    else:
                        number = max(number, self._numbers.get((pod, locator), 0))
                        self._numbers[pod, locator] = number
        except FileNotFoundError:
            pass
        except OSError as error:
            raise from_os(error, doing=f"read {self._path}") from error
