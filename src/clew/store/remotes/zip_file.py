"""A remote in one ZIP file, which `clew bundle` wrote. It can be read only.

The objects are stored without compression, because packs are compressed. The file is untrusted:
an object that is compressed, or larger than the caller allows, counts as damage.
"""

import struct
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

from clew.errors import Damaged, NotAllowed
from clew.store.errors import from_os
from clew.store.remotes.object_storage import damaged_object, missing_object

_BAD = (zipfile.BadZipFile, RuntimeError, NotImplementedError, ValueError, struct.error)
"""The exceptions of `zipfile` for a malformed file."""


class ZipStorage:
    """The objects of a ZIP file."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        try:
            self._file = zipfile.ZipFile(path)
        except OSError as error:
            raise from_os(error, doing=f"read {url}") from error
        except _BAD as error:
            raise Damaged(f"{url} is not a bundle: {error}", hint="get it again") from error
        self._lock = threading.Lock()
        self._objects = {info.filename: info for info in self._file.infolist()}

    def make(self) -> None:
        raise NotAllowed(
            f"{self.url} is a bundle", hint="clew bundle create ID -o FILE writes another"
        )

    def top_level_names(self) -> set[str]:
        return {name.partition("/")[0] for name in self._objects}

    def names(self, directory: str) -> list[str]:
        prefix = f"{directory}/"
        return sorted(n[len(prefix) :] for n in self._objects if n.startswith(prefix))

    def get(self, name: str, *, most: int) -> bytes | None:
        info = self._objects.get(name)
        if info is None:
            return None
        if info.file_size > most:
            raise damaged_object(self.url, name)
        return self.get_ranges(name, [(0, info.file_size)])[0]

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        info = self._objects.get(name)
        if info is None:
            raise missing_object(self.url, name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise damaged_object(self.url, name)
        found = []
        try:
            with self._lock, self._file.open(info) as file:
                for position, length in ranges:
                    file.seek(position)
                    found.append(file.read(length))
        except (*_BAD, OSError, EOFError) as error:
            raise damaged_object(self.url, name) from error
        if [len(data) for data in found] != [length for _, length in ranges]:
            raise damaged_object(self.url, name)
        return found

    def put(self, name: str, data: bytes) -> None:
        self.make()
