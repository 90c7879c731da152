"""How much of the command's output has been read, told to the tracer through shared memory.

What was read and what still waits in the pipe make up all that was written; so the tracer can
note, when a program begins and when it ends, how far the output had come by then.
`docs/formats/trace.md` has the layout.
"""

from __future__ import annotations

import mmap
import os
import select
import struct

_BLOCK = 1 << 16
_SIZE = 48
PIPE, TERMINAL, SAME = 1, 2, 3


class ReadProgress:
    """One run's output: descriptors 1 and 2 of the command."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("reading", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, _SIZE)
        self._memory = mmap.mmap(self.descriptor, _SIZE)
        self._words = memoryview(self._memory).cast("Q")
        self._kinds = [0, 0]
        self.master = -1
        self._describe()

    def declare(self, number: int, kind: int, *, master: int = -1) -> None:
        """What descriptor 1 or 2 is."""
        self._kinds[number - 1] = kind
        if master >= 0:
            self.master = master
        self._describe()

    def _describe(self) -> None:
        struct.pack_into("=IIiI", self._memory, 0, *self._kinds, self.master, 0)

    @property
    def handed(self) -> tuple[int, ...]:
        """The descriptors that the tracer needs."""
        return (self.descriptor,) if self.master < 0 else (self.descriptor, self.master)

    def take(self, number: int, source: int) -> bytes:
        """Wait for more of descriptor 1's or 2's output, and read it. While that is under way the
        tracer waits: what is in neither place would be missed."""
        waiting = select.poll()
        waiting.register(source, select.POLLIN)
        waiting.poll()
        place = 2 * number
        self._words[place + 1] = 1
        try:
            data = os.read(source, _BLOCK)
            self._words[place] += len(data)
        finally:
            self._words[place + 1] = 0
        return data

    def close(self) -> None:
        os.close(self.descriptor)
