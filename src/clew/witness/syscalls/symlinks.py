"""Which symbolic links lay on the way from a path as it was given to the file it led to."""

from __future__ import annotations

import os
from collections.abc import Callable

_MOST = 40  # as many as the kernel follows


class SymlinkResolver:
    """Remembers the links of each folder: most paths share theirs."""

    def __init__(self, readlink: Callable[[bytes], bytes]) -> None:
        """`readlink`: where a link leads, by a path as the command sees it."""
        self._readlink = readlink
        self._folders: dict[bytes, tuple[bytes, tuple[tuple[bytes, bytes], ...]]] = {}

    def between(self, given: bytes, real: bytes | None) -> list[tuple[bytes, bytes]]:
        """(link, target) of each link followed. Nothing is claimed when the way no longer leads
        from one to the other."""
        if real is None or given == real:
            return []
        folder, name = os.path.split(given)
        settled, links = self._settle(folder)
        found = list(links)
        at = os.path.join(settled, name)
        for _ in range(_MOST):
            if at == real:
                return found
            try:
                target = self._readlink(at)
            except OSError:
                return []
            found.append((at, target))
            folder, name = os.path.split(os.path.join(os.path.dirname(at), target))
            settled, links = self._settle(folder)
            found += links
            at = os.path.join(settled, name)
        return []

    def _settle(self, folder: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._walk(folder)
        return known

    def _walk(self, folder: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        links: list[tuple[bytes, bytes]] = []
        at, rest = b"/", [part for part in reversed(folder.split(b"/")) if part]
        while rest and len(links) < _MOST:
            part = rest.pop()
            if part == b".":
                continue
            if part == b"..":
                at = os.path.dirname(at)
                continue
            step = os.path.join(at, part)
            try:
                target = self._readlink(step)
            except OSError:
                at = step
                continue
            links.append((step, target))
            if target.startswith(b"/"):
                at = b"/"
            rest += [piece for piece in reversed(target.split(b"/")) if piece]
        return at, tuple(links)
