"""What one and the same thing is called in two executions.

A file is known by its path, whatever machine it was on; a stream by what it is (`stdout`). An
execution that ran in another folder has its files there: a path below that folder stands for the
same one below the other's.
"""

from __future__ import annotations

from clew.prov.locators import file_locator, path_of
from clew.prov.queries.execution_record import ExecutionRecord
from clew.prov.queries.formats import STREAM

NETWORK_SCHEMES = ("tcp://", "udp://", "http://", "https://", "ftp://")
"""Peers elsewhere; a Unix socket's peer is on this machine."""


def entity_name(locator: str) -> str:
    """A file's path as a locator writes it, a stream's name, or the locator."""
    if locator.startswith("file://"):
        return locator[locator.find("/", len("file://")) :]
    if locator.startswith(STREAM):
        return locator.rsplit("/", 1)[-1]
    return locator


class EntityNames:
    """The names of both, in the words of `a`."""

    def __init__(self, a: ExecutionRecord, b: ExecutionRecord) -> None:
        self._here = self._there = ""
        here, there = _working_directory(a), _working_directory(b)
        if not here.startswith(there) and not there.startswith(here):
            self._here, self._there = here, there

    def a(self, locator: str) -> str:
        return entity_name(locator)

    def b(self, locator: str) -> str:
        name = entity_name(locator)
        if self._there and name.startswith(self._there):
            return self._here + name[len(self._there) :]
        return name

    def in_b(self, name: str) -> bytes:
        """The path that a file of this name has in `b`."""
        if self._there and name.startswith(self._here):
            name = self._there + name[len(self._here) :]
        return path_of(f"file://{name}") or b""


def _working_directory(record: ExecutionRecord) -> str:
    cwd = (record.itself.cwd or "/").rstrip("/") + "/"
    return entity_name(file_locator("", cwd.encode(errors="replace")))
