"""The records that clew-trace writes, and a reader for a trace that is still growing.

`docs/formats/trace.md` describes them. An incomplete record is left for the next read, so a trace
cut at any byte gives the records before the cut.
"""

import os
import struct
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

ContentKey = tuple[int, int, int, int]
"""Device, inode number, size and modification time."""
FileState = tuple[int, int, int, int]
"""Inode number, size, modification and change time: the device of a sandbox is a different one."""


class FileStat(NamedTuple):
    """The result of `stat` at one moment. A rename or a hard link changes only the ctime."""

    dev: int
    ino: int
    size: int
    mtime: int
    ctime: int
    mode: int

    @property
    def inode_key(self) -> tuple[int, int]:
        """Identifies the file, whatever its content."""
        return self[:2]

    @property
    def content_key(self) -> ContentKey:
        """Identifies the bytes: a rename changes only the ctime."""
        return self[:4]

    @property
    def without_mode(self) -> tuple[int, int, int, int, int]:
        """The fields of a `clew.store.Signature`."""
        return self[:5]

    @property
    def file_state(self) -> FileState:
        return self[1:5]


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of every record. `image` is the number of a program in a process."""

    seq: int
    at: int
    image: int


class Spawn(Record, frozen=True, array_like=True, gc=False, tag=1):
    """A process was created."""

    parent: int
    pid: int
    started: int


class Exec(Record, frozen=True, array_like=True, gc=False, tag=2):
    """A process started a program."""

    previous: int
    pid: int
    exe: bytes
    given: bytes
    arguments: list[bytes]
    variables: int
    cwd: bytes


class Variables(Record, frozen=True, array_like=True, gc=False, tag=3):
    """The environment variables of one or more `Exec` records."""

    number: int
    entries: list[bytes]


class Exit(Record, frozen=True, array_like=True, gc=False, tag=4):
    """A process ended; with the CPU time and memory that it used."""

    status: int
    signal: int
    user: int
    system: int
    memory: int


class Open(Record, frozen=True, array_like=True, gc=False, tag=5):
    """A file was opened. For writing, `number` is 0; for reading, `Seen` records refer to it."""

    path: bytes
    real: bytes | None
    flags: int
    file_stat: FileStat | None
    before: FileStat | None
    number: int


class Look(Record, frozen=True, array_like=True, gc=False, tag=6):
    """A query of a path, such as `stat`, or an open that failed. `Seen` records refer to it."""

    kind: int
    path: bytes
    error: int
    flags: int
    file_stat: FileStat | None
    target: bytes | None
    number: int


class Change(Record, frozen=True, array_like=True, gc=False, tag=7):
    """A change of a path, such as a rename or a deletion. `what` says which."""

    what: bytes
    path: bytes
    path2: bytes | None
    before: FileStat | None
    after: FileStat | None


class Descriptor(Record, frozen=True, array_like=True, gc=False, tag=8):
    """A descriptor that a program was started with, or (fd -1) how it left that file."""

    fd: int
    way: int  # 1: for reading, 2: for writing, 3: both
    name: bytes
    file_stat: FileStat | None


class Net(Record, frozen=True, array_like=True, gc=False, tag=9):
    """A connection, a bound address or a datagram."""

    what: bytes
    address: bytes
    socket: int


class Saved(Record, frozen=True, array_like=True, gc=False, tag=10):
    """The tracer saved the content of a file before it was changed."""

    path: bytes
    file_stat: FileStat
    how: bytes
    name: bytes
    error: int


class Hidden(Record, frozen=True, array_like=True, gc=False, tag=11):
    """Something that the tracer could not see: becomes a gap in the record."""

    what: bytes
    path: bytes | None
    why: bytes


class Fetch(Record, frozen=True, array_like=True, gc=False, tag=12):
    """A program requested a URL."""

    url: bytes


class Mark(Record, frozen=True, array_like=True, gc=False, tag=13):
    """The size of the command's output when a program started or ended."""

    over: int
    alone: int  # 1: no other process wrote in between
    stdout: int  # -1: unknown
    stderr: int


class Signal(Record, frozen=True, array_like=True, gc=False, tag=14):
    """A process sent a signal to another."""

    signal: int
    to: int


class Opening(NamedTuple):
    """A descriptor that a program was started with."""

    fd: int
    way: int
    name: bytes
    at: int  # its offset in a regular file; -1: not a regular file
    flags: int  # 1: it appends; 2: it shares the file offset with its parent
    size: int


class Held(Record, frozen=True, array_like=True, gc=False, tag=15):
    """The inherited state of a program at its start."""

    standing: bytes | None  # None: the same as the command itself
    openings: list[Opening]


class Reused(Record, frozen=True, array_like=True, gc=False, tag=16):
    """A program that was not started, as its results were reused."""

    previous: int
    pid: int
    token: int
    stdout_before: int
    stdout_after: int
    stderr_before: int
    stderr_after: int


class Place(Record, frozen=True, array_like=True, gc=False, tag=18):
    """The offset at which a program left a file that its parent can read on."""

    fd: int
    reached: int


class Question(Record, frozen=True, array_like=True, gc=False, tag=17):
    """Never in a trace: the tracer asks whether a program must be started."""

    pid: int
    program: bytes
    arguments: list[bytes]
    variables: list[bytes]
    cwd: bytes
    standing: bytes | None
    openings: list[Opening]
    others: int  # processes that run beside it and its ancestors
    sent: int  # descriptors sent with the question: those it would write to


class Seen(Record, frozen=True, array_like=True, gc=False, tag=19):
    """The numbers of the `Open` and `Look` records that are of this program."""

    opened: list[int]  # alternating seq and number
    looked: list[int]


class Step(Record, frozen=True, array_like=True, gc=False, tag=20):
    """The command said that a step of its work begins or ends."""

    name: bytes


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
    | Step
)

LOADED = 0x8000_0000  # among the flags of an open: the kernel opened the file to execute it
OPEN, STAT, ACCESS, READLINK, REALPATH = 2, 3, 4, 5, 6

_length = struct.Struct("<I").unpack_from
_decode = msgspec.msgpack.Decoder(AnyRecord).decode


def sort_records(trace: Iterable[AnyRecord]) -> list[AnyRecord]:
    """The records sorted by time, without duplicates."""
    kept: list[AnyRecord] = []
    first = 0  # index of the first record with the same seq
    for record in sorted(trace, key=attrgetter("seq", "at")):
        if not kept or kept[-1].seq != record.seq:
            first = len(kept)
        elif record in kept[first:]:
            continue
        kept.append(record)
    return kept


class ReadOpen(msgspec.Struct, frozen=True, gc=False):
    """One open for reading, taken from a `Seen` record."""

    seq: int
    at: int
    image: int
    what: Open


def expand_opens(trace: Sequence[AnyRecord]) -> list[AnyRecord | ReadOpen]:
    """The sorted records, with the opens of each `Seen` record inserted by their seq. Without
    looks: `Seen` records refer to these by their numbers."""
    expanded: list[AnyRecord | ReadOpen] = [record for record in trace if type(record) is not Look]
    described = {record.number: record for record in expanded if isinstance(record, Open)}
    for record in list(expanded):
        if isinstance(record, Seen):
            numbers = iter(record.opened)
            expanded += [
                ReadOpen(seq, record.at, record.image, described[number])
                for seq, number in zip(numbers, numbers, strict=True)
            ]
    expanded.sort(key=attrgetter("seq"))
    return expanded


def decode_records(data: bytes) -> tuple[list[AnyRecord], int]:
    """The records in `data`, and how many bytes they have. Only an incomplete record may be left
    over; raises msgspec.MsgspecError with one that is malformed."""
    records: list[AnyRecord] = []
    view, at = memoryview(data), 0
    while at + 4 <= len(view):
        end = at + 4 + _length(view, at)[0]
        if end > len(view):
            break
        records.append(_decode(view[at + 4 : end]))
        at = end
    return records, at


class Trace:
    """Reads a trace as it grows."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._rest = b""
        self.damaged = False
        """A record could not be decoded; nothing after it is read."""

    def read(self) -> list[AnyRecord]:
        """The records written since the last call."""
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
                except msgspec.MsgspecError:  # a power cut left garbage: the trace ends here
                    self.damaged = True
                    return records
                at = end
            self._rest = bytes(data[at:])
        return records

    def close(self) -> None:
        os.close(self._file)
