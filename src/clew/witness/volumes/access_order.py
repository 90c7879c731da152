"""Merge what several queues of the kernel report into one order, without IO.

Each container has a queue, so that an access needs no process to be attributed; a process may have
ended when its access is read. Changes of names are in another queue. Events of one queue are in
order, those of two are not. Accesses that meet at one file decide: a reader comes after a writer,
a new name after the accesses to the old one. Otherwise the order changes nothing.
"""

from collections.abc import Iterator, Sequence

import msgspec

from clew.witness.volumes.accesses import Access, FileAccess, FileRename

_File = tuple[str, bytes, bytes]


def order_accesses(
    queues: Sequence[Sequence[Access]], names: Sequence[Access] = (), *, due: int | None = None
) -> tuple[list[Access], list[Access]]:
    """All accesses of the queues, each queue in its own order, with the changes of names between
    them; and the changes that are left for the next round.

    The names were read after the queues. So those that the accesses need are there, but accesses
    that came before a change may still be unread: of the names, only the first `due` must be taken.
    """
    due = len(names) if due is None else due
    filled = [queue for queue in queues if queue]
    if len(filled) + bool(names) < 2 and due == len(names):
        return [access for queue in (*filled, names) for access in queue], []
    return _Merge(filled, names).run(due)


def put_in_time(accesses: Sequence[Access], begin: int, *, after: int = 0) -> Iterator[Access]:
    """The accesses with times that agree with their order, all later than `after`. A file that was
    opened for reading before `begin` keeps that time."""
    last = after
    for access in accesses:
        if isinstance(access, FileAccess) and not access.written and access.at < begin:
            yield access
            continue
        last = max(access.at, last + 1)
        yield access if last == access.at else msgspec.structs.replace(access, at=last)


class _Merge:
    def __init__(self, accesses: Sequence[Sequence[Access]], names: Sequence[Access]) -> None:
        self._queues = queues = [*accesses, names]
        self._done = [0] * len(queues)
        self._waiting = [False] * len(queues)
        self._merged: list[Access] = []
        self._last: list[dict[_File, int]] = [{} for _ in queues]
        self._removals: list[dict[bytes, list[tuple[int, bytes]]]] = [{} for _ in queues]
        self._directories: list[list[tuple[int, bytes]]] = [[] for _ in queues]
        for number, queue in enumerate(queues):
            for index, access in enumerate(queue):
                if isinstance(access, FileRename) and access.directory:
                    self._directories[number].append((index, access.target + b"/"))
                for key in _announced(access):
                    self._last[number][key] = index
                if not isinstance(access, FileAccess):
                    removals = self._removals[number].setdefault(access.path, [])
                    removals.append((index, access.handle))

    def run(self, due: int) -> tuple[list[Access], list[Access]]:
        last = len(self._queues) - 1
        for number, queue in enumerate(self._queues):
            self._advance(number, due if number == last else len(queue))
        return self._merged, list(self._queues[last][self._done[last] :])

    def _advance(self, number: int, end: int) -> None:
        """Take from a queue up to an index, and first from others what must precede."""
        if self._waiting[number] or self._done[number] >= end:
            return  # if it waits, two queues wait for each other: then any order will do
        self._waiting[number] = True
        queue = self._queues[number]
        while self._done[number] < end:
            access = queue[self._done[number]]
            for other in range(len(self._queues)):
                if other != number:
                    self._advance(other, self._needed(access, other))
            self._merged.append(access)
            self._done[number] += 1
        self._waiting[number] = False

    def _needed(self, access: Access, other: int) -> int:
        """How much of another queue comes before this access."""
        last = self._last[other]
        needed = 1 + max((last.get(key, -1) for key in _awaited(access)), default=-1)
        if isinstance(access, FileRename) and access.directory:
            for index, one in enumerate(self._queues[other]):
                if one.path.startswith(access.path + b"/"):
                    needed = max(needed, index + 1)
        if isinstance(access, FileAccess):
            for index, target in self._directories[other]:
                if access.path.startswith(target):
                    needed = max(needed, index + 1)
        if isinstance(access, FileAccess) and access.path in self._removals[other]:
            for index, handle in self._removals[other][access.path]:
                if handle == access.handle:
                    break  # its own end, and what followed
                needed = max(needed, index + 1)
        return needed


def _announced(access: Access) -> Iterator[_File]:
    """What others may have to wait for: that a file was written, and that it got its name; and
    for a change of names, that the file was accessed under the old one."""
    if isinstance(access, FileAccess):
        yield ("accessed", access.handle, access.path)
        if access.written:
            yield ("written", access.handle, b"")
    elif isinstance(access, FileRename):
        yield ("named", access.handle, access.target)


def _awaited(access: Access) -> Iterator[_File]:
    if not access.handle:
        return
    if isinstance(access, FileAccess):
        yield ("named", access.handle, access.path)
        if access.read:
            yield ("written", access.handle, b"")
    else:
        yield ("accessed", access.handle, access.path)
