"""Read the content of a file on a volume: its digest, and the bytes where they are stored.

A file is opened by its handle, so no link on the volume leads to another file, and only if it is a
regular one. The digest counts only if the file did not change while it was read.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from blake3 import blake3

from clew.agents.node.kernel.volume_mount import VolumeMount, read_state
from clew.store.types import format_digest
from clew.witness.volumes.accesses import ContentAnswer, ContentRequest

_BLOCK = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenContent:
    """A file that is open for reading, in the state that was asked for."""

    def __init__(self, mount: VolumeMount, request: ContentRequest) -> None:
        """OSError if the file is gone or is not as it was."""
        self._request = request
        self._descriptor = mount.open(request.handle, _FLAGS, request.path)
        self.changed = False
        """It changed while it was read: its content is not known."""
        self.answer: ContentAnswer | None = None
        self._before = read_state(self._descriptor)
        same = (self._before.size, self._before.mtime) == (request.state.size, request.state.mtime)
        if not stat.S_ISREG(self._before.mode) or not same:
            self.close()
            raise OSError(f"{os.fsdecode(request.path)} is not as it was")

    @property
    def size(self) -> int:
        return self._before.size

    def blocks(self) -> Iterator[bytes]:
        """The content; afterwards, `answer` or `changed` is set."""
        hasher, count = blake3(), 0
        base_size, kept = self._request.base_size, False
        with suppress(OSError):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while block := os.read(self._descriptor, _block_size(count, base_size)):
            count += len(block)
            if count > self.size:  # its writer may be faster than this, or truncate it to any size
                self.changed = True
                return
            hasher.update(block)
            if count == base_size < self.size:
                kept = format_digest(hasher.digest()) == self._request.base_digest
            yield block
        after = read_state(self._descriptor)
        if count != self.size or (after.mtime, after.ctime) != (
            self._before.mtime,
            self._before.ctime,
        ):
            self.changed = True
            return
        self.answer = ContentAnswer(
            digest=format_digest(hasher.digest()),
            size=count,
            mode=self._before.mode,
            mtime=self._before.mtime,
            kept_base=kept,
        )

    def close(self) -> None:
        os.close(self._descriptor)


def _block_size(count: int, base_size: int) -> int:
    """Up to the end of the former content, so that its digest can be compared there."""
    return min(_BLOCK, base_size - count) if count < base_size else _BLOCK
