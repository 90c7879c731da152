"""Find the symbolic links between a path as it was given and the file it led to."""

import os
from collections.abc import Callable

_MAX_LINKS = 40  # as many as the kernel follows


class SymlinkResolver:
    """Caches the links of each directory: most paths share theirs."""

    def __init__(self, readlink: Callable[[bytes], bytes]) -> None:
        """`readlink` returns the target of a link, by its path as the command sees it."""
        self._readlink = readlink
        self._resolved: dict[bytes, tuple[bytes, tuple[tuple[bytes, bytes], ...]]] = {}

    def between(self, given: bytes, real: bytes | None) -> list[tuple[bytes, bytes]]:
        """(link, target) of each link that was followed; none if `given` no longer leads to
        `real`."""
        if real is None or given == real:
            return []
        directory, name = os.path.split(given)
        resolved, links = self._resolve(directory)
        followed = list(links)
        at = os.path.join(resolved, name)
        for _ in range(_MAX_LINKS):
            if at == real:
                return followed
            try:
                target = self._readlink(at)
            except OSError:
                return []
            followed.append((at, target))
            directory, name = os.path.split(os.path.join(os.path.dirname(at), target))
            resolved, links = self._resolve(directory)
            followed += links
            at = os.path.join(resolved, name)
        return []

    def _resolve(self, directory: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        known = self._resolved.get(directory)
        if known is None:
            known = self._resolved[directory] = self._walk(directory)
        return known

    def _walk(self, directory: bytes) -> tuple[bytes, tuple[tuple[bytes, bytes], ...]]:
        links: list[tuple[bytes, bytes]] = []
        at, rest = b"/", [part for part in reversed(directory.split(b"/")) if part]
        while rest and len(links) < _MAX_LINKS:
            part = rest.pop()
            if part == b".":
                continue
            if part == b"..":
                at = os.path.dirname(at)
                continue
            path = os.path.join(at, part)
            try:
                target = self._readlink(path)
            except OSError:
                at = path
                continue
            links.append((path, target))
            if target.startswith(b"/"):
                at = b"/"
            rest += [piece for piece in reversed(target.split(b"/")) if piece]
        return at, tuple(links)
