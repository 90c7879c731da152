"""Cut content into chunks at content-defined positions (FastCDC), and skip holes.

The same bytes are cut at the same positions wherever they occur, so an edit changes only the chunks
around it. The sizes were chosen by measuring what an edit costs
(`docs/decisions/0002-the-stores-own-index.md`); since chunks are compressed and packed together,
small ones cost little.
"""

import errno
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from clew.errors import RecordingFailed

MIN_CHUNK, MAX_CHUNK = 64 << 10, 1 << 20
"""The same value as in `native/chunk/cuts.c`."""
READ_SIZE = 4 << 20
"""Bytes that are read at a time."""


LIBRARY = Path(__file__).resolve().parents[2] / "_native" / "libclew-chunk.so"


@functools.cache
def _compiled_cuts() -> Callable[[bytes], list[int]]:
    """The function of `native/chunk/cuts.c`. It runs without the interpreter lock."""
    import ctypes  # late: start-up

    try:
        cut = ctypes.CDLL(str(LIBRARY)).clew_cuts
    except OSError as error:
        raise RecordingFailed(
            f"libclew-chunk.so, which cuts large files into chunks, cannot be loaded: {error}",
            hint="reinstall clew; without a wheel for this machine, install a C compiler first",
        ) from error
    cut.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
    cut.restype = ctypes.c_size_t

    def cuts(data: bytes) -> list[int]:
        ends = (ctypes.c_uint64 * (len(data) // MIN_CHUNK + 1))()
        return ends[: cut(data, len(data), ends)]

    return cuts


def find_cuts(data: bytes | memoryview) -> list[int]:
    """The ends of the chunks in `data`; the last one is the end of the data."""
    if len(data) <= MIN_CHUNK:
        return [len(data)] if data else []
    return _compiled_cuts()(bytes(data))


def cut_buffers(buffers: Iterable[bytes | int]) -> Iterator[list[memoryview] | int]:
    """Cut a stream of buffers and holes (as lengths) into lists of chunks, and holes.

    A list holds the chunks of one buffer. Cutting restarts after a hole, so the cuts depend only
    on the content and its holes, not on the buffers.
    """
    rest: bytes | memoryview = b""
    for buffer in buffers:
        if isinstance(buffer, int):
            if rest:
                yield slice_chunks(memoryview(rest), find_cuts(rest))
                rest = b""
            yield buffer
            continue
        data = b"".join((rest, buffer)) if rest else buffer
        view = memoryview(data)
        ends = find_cuts(data)
        rest = view[ends[-2] if len(ends) > 1 else 0 :]
        if len(ends) > 1:
            yield slice_chunks(view, ends[:-1])
    if rest:
        yield slice_chunks(memoryview(rest), find_cuts(rest))


def slice_chunks(view: memoryview, ends: list[int]) -> list[memoryview]:
    """The chunks that end at `ends`."""
    start = 0
    out: list[memoryview] = []
    for end in ends:
        out.append(view[start:end])
        start = end
    return out


def read_buffers(fd: int, status: os.stat_result) -> Iterator[bytes | int]:
    """Read a file as buffers, and its holes as lengths; less if it was truncated meanwhile.

    Holes are searched for only if fewer blocks are allocated than the size needs.
    """
    at = 0
    for start, end in _data_ranges(fd, status):
        if start > at:
            yield start - at
            at = start
        while at < end:
            data = os.pread(fd, min(READ_SIZE, end - at), at)
            if not data:
                return
            at += len(data)
            yield data
    if at < status.st_size:
        yield status.st_size - at


def count_hole_bytes(fd: int, status: os.stat_result) -> int:
    """The bytes of a file that are holes."""
    return status.st_size - sum(end - start for start, end in _data_ranges(fd, status))


def _data_ranges(fd: int, status: os.stat_result) -> Iterator[tuple[int, int]]:
    """The ranges of a file that are not holes."""
    size = status.st_size
    if status.st_blocks * 512 >= size:
        yield 0, size
        return
    at = 0
    while at < size:
        start = _seek(fd, at, os.SEEK_DATA, size)
        if start >= size:
            return
        at = min(_seek(fd, start, os.SEEK_HOLE, size), size)
        yield start, at


def _seek(fd: int, at: int, how: int, size: int) -> int:
    try:
        return os.lseek(fd, at, how)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole until the end
            return size
        return at if how == os.SEEK_DATA else size  # the file system does not support it
