"""Tell the tracer through shared memory how much of the command's output was read.

Bytes read plus bytes still in the pipe are all bytes written. So the tracer can note the length of
the output at the start and end of each program, and Clew knows which program printed what.
`docs/formats/trace.md` has the layout.
"""

import mmap
import os
import select
import struct

_BLOCK = 1 << 16
_SIZE = 48
PIPE, TERMINAL, SAME = 1, 2, 3


class OutputPosition:
    """How far descriptors 1 and 2 of one command were read."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("output-position", os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, _SIZE)
        self._memory = mmap.mmap(self.descriptor, _SIZE)
        self._words = memoryview(self._memory).cast("Q")
        self._kinds = [0, 0]
        self.master = -1
        self._describe()

    def declare(self, number: int, kind: int, *, master: int = -1) -> None:
        """Say what descriptor 1 or 2 is."""
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

    def read_output(self, number: int, source: int) -> bytes:
        """Wait for more output of descriptor 1 or 2 and read it. The tracer waits during the read:
        it would not count bytes that have left the pipe but were not added yet."""
        poller = select.poll()
        poller.register(source, select.POLLIN)
        poller.poll()
        index = 2 * number
        self._words[index + 1] = 1
        try:
            data = os.read(source, _BLOCK)
            self._words[index] += len(data)
        finally:
            self._words[index + 1] = 0
        return data

    def close(self) -> None:
        os.close(self.descriptor)
