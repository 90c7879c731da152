"""What clew-trace writes: typed records, read from a file that is still growing.

`docs/formats/trace.md` describes them. A record that is not wholly there yet is left for the
next reading, so a trace cut at any byte gives the records before the cut.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec


class Facts(NamedTuple):
    """A file's state at one moment. All but ctime stay the same when it is renamed or linked."""

    dev: int
    ino: int
    size: int
    mtime: int
    ctime: int
    mode: int


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    seq: int
    at: int
    image: int


class Spawn(Record, frozen=True, array_like=True, gc=False, tag=1):
    parent: int
    pid: int
    started: int


class Exec(Record, frozen=True, array_like=True, gc=False, tag=2):
    previous: int
    pid: int
    exe: bytes
    given: bytes
    arguments: list[bytes]
    variables: int
    cwd: bytes


class Variables(Record, frozen=True, array_like=True, gc=False, tag=3):
    number: int
    entries: list[bytes]


class Exit(Record, frozen=True, array_like=True, gc=False, tag=4):
    status: int
    signal: int
    user: int
    system: int
    memory: int


class Open(Record, frozen=True, array_like=True, gc=False, tag=5):
    path: bytes
    real: bytes | None
    flags: int
    facts: Facts | None
    before: Facts | None
    number: int


class Look(Record, frozen=True, array_like=True, gc=False, tag=6):
    kind: int
    path: bytes
    error: int
    flags: int
    facts: Facts | None
    target: bytes | None
    number: int


class Change(Record, frozen=True, array_like=True, gc=False, tag=7):
    what: bytes
    path: bytes
    path2: bytes | None
    before: Facts | None
    after: Facts | None


class Descriptor(Record, frozen=True, array_like=True, gc=False, tag=8):
    fd: int
    way: int  # 1: for reading, 2: for writing, 3: both
    name: bytes
    facts: Facts | None


class Net(Record, frozen=True, array_like=True, gc=False, tag=9):
    what: bytes
    address: bytes
    socket: int


class Saved(Record, frozen=True, array_like=True, gc=False, tag=10):
    path: bytes
    facts: Facts
    how: bytes
    name: bytes
    error: int


class Hidden(Record, frozen=True, array_like=True, gc=False, tag=11):
    what: bytes
    path: bytes | None
    why: bytes


class Fetch(Record, frozen=True, array_like=True, gc=False, tag=12):
    url: bytes


class Mark(Record, frozen=True, array_like=True, gc=False, tag=13):
    """How much of the command's output there was when a program began, or ended."""

    over: int
    alone: int  # nobody else wrote meanwhile
    stdout: int  # -1: unknown
    stderr: int


class Signal(Record, frozen=True, array_like=True, gc=False, tag=14):
    signal: int
    to: int


class Opening(NamedTuple):
    """A descriptor that a program was started with."""

    fd: int
    way: int
    name: bytes
    at: int  # its place in a regular file; -1: no such
    flags: int  # 1: it appends; 2: its parent has it, too, with one place in the file for both
    size: int


class Held(Record, frozen=True, array_like=True, gc=False, tag=15):
    standing: bytes | None  # None: as the command itself was started
    openings: list[Opening]


class Reused(Record, frozen=True, array_like=True, gc=False, tag=16):
    """A program that was not started: what it would have done was done already."""

    previous: int
    pid: int
    token: int
    stdout_before: int
    stdout_after: int
    stderr_before: int
    stderr_after: int


class Place(Record, frozen=True, array_like=True, gc=False, tag=18):
    """How far a program got in a file that its parent can read on from there."""

    fd: int
    reached: int


class Question(Record, frozen=True, array_like=True, gc=False, tag=17):
    """Never in a trace: what is asked before a program is started."""

    pid: int
    program: bytes
    arguments: list[bytes]
    variables: list[bytes]
    cwd: bytes
    standing: bytes | None
    openings: list[Opening]
    others: int  # processes that run beside it and those it came from
    sent: int  # descriptors that came with it: those it would write to


class Seen(Record, frozen=True, array_like=True, gc=False, tag=19):
    opened: list[int]  # seq and number, in turn
    looked: list[int]


AnyRecord = (
    Spawn
    | Exec
    | Variables
    | Exit
    | Open
    | Look
    | Change
    | Descriptor
    | Net
    | Saved
    | Hidden
    | Fetch
    | Mark
    | Signal
    | Held
    | Reused
    | Place
    | Seen
)

LOADED = 0x8000_0000  # among an open's flags: the kernel opened it, to run it
OPEN, STAT, ACCESS, READLINK, REALPATH = 2, 3, 4, 5, 6

_length = struct.Struct("<I").unpack_from
_decode = msgspec.msgpack.Decoder(AnyRecord).decode


def ordered(trace: Iterable[AnyRecord]) -> list[AnyRecord]:
    """The records in the order of what happened, each once, in whatever order and however often
    they were read."""
    kept: list[AnyRecord] = []
    first = 0  # where in `kept` those of the same moment begin
    for record in sorted(trace, key=attrgetter("seq", "at")):
        if not kept or kept[-1].seq != record.seq:
            first = len(kept)
        elif record in kept[first:]:
            continue
        kept.append(record)
    return kept


class Sighting(msgspec.Struct, frozen=True, gc=False):
    """One opening for reading, of those that a `Seen` tells together."""

    seq: int
    at: int
    image: int
    what: Open


def unfolded(trace: Sequence[AnyRecord]) -> list[AnyRecord | Sighting]:
    """These records, which are in their order, and every opening in its own place among them."""
    described = {record.number: record for record in trace if isinstance(record, Open)}
    moments: list[AnyRecord | Sighting] = list(trace)
    for record in trace:
        if isinstance(record, Seen):
            words = iter(record.opened)
            moments += [
                Sighting(seq, record.at, record.image, described[number])
                for seq, number in zip(words, words, strict=True)
            ]
    moments.sort(key=attrgetter("seq"))
    return moments


class Trace:
    """Reads a trace as it grows."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._rest = b""
        self.damaged = False
        """A record could not be decoded; nothing after it is read."""

    def read(self) -> list[AnyRecord]:
        """The records that have come since the last call."""
        records: list[AnyRecord] = []
        while not self.damaged and (block := os.read(self._file, 1 << 20)):
            data = memoryview(self._rest + block)
            at, size = 0, len(data)
            while at + 4 <= size:
                end = at + 4 + _length(data, at)[0]
                if end > size:
                    break
                try:
                    records.append(_decode(data[at + 4 : end]))
                except msgspec.MsgspecError:  # a power cut left rubbish: here the trace ends
                    self.damaged = True
                    return records
                at = end
            self._rest = bytes(data[at:])
        return records

    def close(self) -> None:
        os.close(self._file)
