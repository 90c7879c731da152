"""Capture the command's standard streams.

A pipe is copied on its way, a terminal is replaced by a pseudo-terminal, and a file is passed on
unchanged (it is an entity of its own). The captured copy is masked and cut at a limit; the digest
covers the whole stream.
"""

import contextlib
import fcntl
import os
import select
import stat
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import blake3
from msgspec import Struct, field

from clew.documents.ids import Digest
from clew.redaction import Redactor
from clew.run.stdio.output_counter import PIPE, SAME, TERMINAL, OutputPosition
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.stdio.terminal import Terminal, disable_output_processing

NAMES = ("stdin", "stdout", "stderr")
_BLOCK = 1 << 16


class StreamCapture:
    """Keeps a masked copy of one stream, up to a limit; beyond it, only the digest."""

    def __init__(self, path: Path, *, redactor: Redactor, limit: int) -> None:
        self.path = path
        self.size = 0
        self._given = 0
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._mask = redactor.stream()
        self._limit = limit
        self._hash = blake3.blake3()
        self.failed = False
        """The disk was full: the copy is incomplete."""

    def feed(self, data: bytes) -> bytes:
        """Capture a piece; return what is masked so far (the end may be held back)."""
        self._given += len(data)
        return self._put(self._mask.feed(data))

    def flush(self) -> bytes:
        """The stream has ended: return what was held back."""
        return self._put(self._mask.finish())

    def finish(self) -> None:
        self.flush()
        os.close(self._file)

    @property
    def whole(self) -> bool:
        return self.size <= self._limit and not self.failed

    @property
    def masked(self) -> bool:
        """Whether a secret was masked in it: a mask is shorter than any secret."""
        return self.size != self._given

    @property
    def digest(self) -> Digest:
        return Digest(f"blake3:{self._hash.hexdigest()}")

    def _put(self, data: bytes) -> bytes:
        self._hash.update(data)
        room = self._limit - self.size
        self.size += len(data)
        if room > 0 and not self.failed:
            try:
                _write_all(self._file, data[:room])
            except OSError:
                self.failed = True
        return data


class Streams(Struct, eq=False):
    """The command's descriptors 0, 1 and 2, and the threads that copy them."""

    descriptors: tuple[int, int, int]
    names: Mapping[bytes, str]
    """`pipe:[N]` or a terminal's path → stdin, stdout or stderr, as the tracer will see them."""
    kept: dict[str, StreamCapture]
    terminal: Terminal | None = None
    opened: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Files to open in the sandbox, as (flags, path) by descriptor."""
    output_position: OutputPosition = field(default_factory=OutputPosition)
    """How much output was read, for the tracer."""
    ended: threading.Event = field(default_factory=threading.Event)
    """The command has ended."""
    _our_copies: list[int] = field(default_factory=list)
    _copiers: list[Callable[[], None]] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def copy_with(self, copier: Callable[[], None]) -> None:
        """Run this function in a thread from the start of the command to its end."""
        self._copiers.append(copier)

    def close_at_start(self, descriptor: int) -> None:
        """Close a descriptor once the command has its own copy of it."""
        self._our_copies.append(descriptor)

    def started(self) -> None:
        """The command has started: close our copies of its descriptors, and start to copy."""
        for descriptor in self._our_copies:
            os.close(descriptor)
        for copier in self._copiers:
            thread = threading.Thread(target=copier, daemon=True)
            thread.start()
            self._threads.append(thread)

    def facets(self) -> dict[str, Any]:
        """Facets of the streams, after `finish`."""
        masked = sorted(name for name, capture in self.kept.items() if capture.masked)
        typed = self.terminal.typed if self.terminal else 0
        return {**({"masked": masked} if masked else {}), **({"typed": typed} if typed else {})}

    def finish(self) -> None:
        """The command has ended: read what is still in the pipes, then stop."""
        self.ended.set()
        for thread in self._threads:
            thread.join()
        if self.terminal is not None:
            self.terminal.restore()
        for capture in self.kept.values():
            capture.finish()
        self.output_position.close()


def capture_streams(
    directory: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
) -> Streams:
    """Set up the capture of this process's own descriptors."""
    terminal = Terminal.open() if os.isatty(1) or os.isatty(2) else None
    streams = Streams(descriptors=(0, 1, 2), names={}, kept={}, terminal=terminal)
    position = streams.output_position
    names: dict[bytes, str] = {}
    descriptors = [0, 1, 2]
    shared: dict[tuple[int, int], str] = {}
    for number in (1, 2):
        kind = _kind(number)
        if kind == "terminal" and terminal is not None:
            descriptors[number] = terminal.slave
            name = names.setdefault(os.fsencode(terminal.name), NAMES[number])
            kind_of_output = TERMINAL if name == NAMES[number] else SAME
            position.declare(number, kind_of_output, master=terminal.master)
        elif kind == "pipe":
            same = _identity(number)
            name = shared.setdefault(same, NAMES[number])
            if name != NAMES[number]:  # 2>&1: keep one stream in its order
                descriptors[number] = descriptors[1]
                position.declare(number, SAME)
                continue
            read, write = os.pipe()
            position.declare(number, PIPE)
            capture = StreamCapture(directory / name, redactor=redactor, limit=limit)
            streams.kept[name] = capture
            names[os.fsencode(os.readlink(f"/proc/self/fd/{write}"))] = name
            descriptors[number] = write
            streams.close_at_start(write)
            streams.copy_with(_copy_output(read, number, capture, position, number))
    if terminal is not None:
        name = names[os.fsencode(terminal.name)]
        capture = StreamCapture(directory / name, redactor=redactor, limit=limit)
        streams.kept[name] = capture
        if terminal.both_ways:
            descriptors[0] = terminal.slave
        streams.close_at_start(terminal.slave)
        number = NAMES.index(name)
        streams.copy_with(terminal.copy(capture.feed, streams.ended, position, number))
    if _kind(0) == "pipe":
        read, write = os.pipe()
        capture = StreamCapture(directory / "stdin", redactor=redactor, limit=limit)
        streams.kept["stdin"] = capture
        names[os.fsencode(os.readlink(f"/proc/self/fd/{read}"))] = "stdin"
        descriptors[0] = read
        demand.watch(read)
        streams.close_at_start(read)
        streams.copy_with(_copy_input(write, capture, demand, streams.ended))
    streams.descriptors = (descriptors[0], descriptors[1], descriptors[2])
    streams.names = names
    return streams


def describe_streams() -> dict[str, Any]:
    """The facet that describes this process's descriptors, for `recreate_streams`."""
    return {name: _describe_stream(number) for number, name in enumerate(NAMES)}


def _describe_stream(number: int) -> dict[str, Any]:
    kind = _kind(number)
    if number == 2 and _same(1, 2):
        return {"kind": "stdout"}
    if kind == "other":
        with contextlib.suppress(OSError, ValueError):
            path = os.readlink(f"/proc/self/fd/{number}")
            if stat.S_ISREG(os.fstat(number).st_mode):
                flags = fcntl.fcntl(number, fcntl.F_GETFL)
                shown = os.fsencode(path).decode(errors="replace")
                end = os.fstat(number).st_size if flags & os.O_APPEND else _position(number)
                return {"kind": "file", "path": shown, "begin": end}
    return {"kind": kind}


def recreate_streams(
    directory: Path,
    facet: Mapping[str, Any],
    *,
    redactor: Redactor,
    limit: int,
    stdin: Callable[[], Iterable[bytes]] | None,
    show: tuple[int, int] | None,
) -> Streams:
    """Descriptors like those in a `describe_streams` facet: recorded input, files opened in the
    sandbox, output captured and shown. The keys typed at a terminal were not recorded, so there is
    no input then.

    The output is shown with secrets masked: the command may be untrusted, and may print the
    secrets that it was given."""
    streams = Streams(descriptors=(0, 1, 2), names={}, kept={})
    position = streams.output_position
    names: dict[bytes, str] = {}
    descriptors = [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1, -1]
    streams.close_at_start(descriptors[0])
    for number, name in enumerate(NAMES):
        stream = facet.get(name, {})
        kind = stream.get("kind", "pipe")
        if kind == "file" or (kind == "other" and number):
            flags = os.O_RDONLY
            if number:
                flags = os.O_WRONLY | os.O_CREAT
                flags |= os.O_APPEND if stream.get("begin") else os.O_TRUNC
            streams.opened[number] = flags, stream.get("path", os.devnull)
            descriptors[number] = descriptors[0]
        elif number == 0 and (stdin is not None or kind == "pipe"):
            read, write = os.pipe()
            names[_descriptor_path(read)] = name
            descriptors[0] = read
            streams.close_at_start(read)
            capture = streams.kept[name] = StreamCapture(
                directory / name, redactor=redactor, limit=limit
            )
            streams.copy_with(_copy_recorded(write, stdin or tuple, capture))
        elif number == 2 and (kind == "stdout" or (kind == "terminal" and position.master >= 0)):
            descriptors[2] = descriptors[1]
            position.declare(2, SAME)
            if 1 in streams.opened:
                streams.opened[2] = os.O_WRONLY | os.O_APPEND, streams.opened[1][1]
        elif number:
            read, write = _open_terminal(facet) if kind == "terminal" else os.pipe()
            names |= dict.fromkeys(_descriptor_paths(write), name)
            descriptors[number] = write
            streams.close_at_start(write)
            capture = streams.kept[name] = StreamCapture(
                directory / name, redactor=redactor, limit=limit
            )
            shown = show[number - 1] if show else None
            streams.copy_with(
                _copy_output(read, shown, capture, position, number, show_masked=True)
            )
            if kind == "terminal":
                position.declare(number, TERMINAL, master=read)
            else:
                position.declare(number, PIPE)
    streams.descriptors = (descriptors[0], descriptors[1], descriptors[2])
    streams.names = names
    return streams


def _open_terminal(facet: Mapping[str, Any]) -> tuple[int, int]:
    """A pseudo-terminal that converts newlines if the recorded one did (it was used both ways)."""
    master, slave = os.openpty()
    if any(facet.get(name, {}).get("kind") != "terminal" for name in NAMES):
        disable_output_processing(slave)
    return master, slave


def _descriptor_path(descriptor: int) -> bytes:
    return os.fsencode(os.readlink(f"/proc/self/fd/{descriptor}"))


def _descriptor_paths(descriptor: int) -> tuple[bytes, ...]:
    """Its path here, and in a sandbox with its own /dev/pts."""
    name = _descriptor_path(descriptor)
    return name, name.removeprefix(b"/dev/pts")


def _copy_recorded(
    target: int, source: Callable[[], Iterable[bytes]], capture: StreamCapture
) -> Callable[[], None]:
    def feed() -> None:
        try:
            for data in source():
                capture.feed(data)
                _write_all(target, data)
        except OSError:
            pass  # the command closed its stdin
        finally:
            os.close(target)

    return feed


def _copy_output(
    source: int,
    target: int | None,
    capture: StreamCapture,
    position: OutputPosition,
    number: int,
    *,
    show_masked: bool = False,
) -> Callable[[], None]:
    ends = os.isatty(source)

    def show(data: bytes) -> None:
        if target is not None:  # the user's terminal converts newlines itself
            _write_all(target, data.replace(b"\r\n", b"\n") if ends else data)

    def copy() -> None:
        try:
            while data := position.read_output(number, source):
                masked = capture.feed(data)
                show(masked if show_masked else data)
            if show_masked:
                show(capture.flush())
        except OSError:
            pass  # the reader is gone: closing our end tells the command
        finally:
            os.close(source)

    return copy


def _copy_input(
    target: int, capture: StreamCapture, demand: StdinDemand, ended: threading.Event
) -> Callable[[], None]:
    def copy() -> None:
        try:
            while not ended.is_set() and demand.wait(ended):
                ready, _, _ = select.select([0], [], [], 0.05)
                if not ready:
                    continue
                data = os.read(0, _BLOCK)
                if not data:
                    break
                capture.feed(data)
                _write_all(target, data)
        except OSError:
            pass  # the command closed its stdin
        finally:
            os.close(target)

    return copy


def _position(number: int) -> int:
    return os.lseek(number, 0, os.SEEK_CUR)


def _same(a: int, b: int) -> bool:
    with contextlib.suppress(OSError):
        return _identity(a) == _identity(b) and not stat.S_ISCHR(os.fstat(a).st_mode)
    return False


def _kind(number: int) -> str:
    """terminal, pipe (or socket), other (a file, a device), closed."""
    try:
        if os.isatty(number):
            return "terminal"
        mode = os.fstat(number).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            return "pipe"
    except OSError:
        return "closed"
    return "other"


def _identity(number: int) -> tuple[int, int]:
    status = os.fstat(number)
    return status.st_dev, status.st_ino


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]
