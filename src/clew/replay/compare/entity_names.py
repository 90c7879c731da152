"""Name files and streams so that two executions can be compared.

A file is named by its path, on any machine; a stream by its kind (`stdout`). If the executions ran
in different directories, a path below one working directory corresponds to the same path below the
other.
"""

from clew.documents.ids import Locator
from clew.prov.locators import file_locator, path_of
from clew.prov.queries.execution_record import ExecutionRecord
from clew.prov.queries.formats import STREAM

NETWORK_SCHEMES = ("tcp://", "udp://", "http://", "https://", "ftp://")
"""Remote peers; the peer of a Unix socket is on this machine."""


def entity_name(locator: str) -> str:
    """The escaped path of a file, the name of a stream, or the locator itself."""
    if locator.startswith("file://"):
        return locator[locator.find("/", len("file://")) :]
    if locator.startswith(STREAM):
        return locator.rsplit("/", 1)[-1]
    return locator


class EntityNames:
    """Maps the entities of both executions to the names of `a`."""

    def __init__(self, a: ExecutionRecord, b: ExecutionRecord) -> None:
        self._here = self._there = ""
        here, there = _working_directory(a), _working_directory(b)
        if not here.startswith(there) and not there.startswith(here):
            self._here, self._there = here, there

    def a(self, locator: Locator) -> str:
        return entity_name(locator)

    def b(self, locator: Locator) -> str:
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
