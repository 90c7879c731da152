"""Several names of one file, without IO.

Neither fanotify nor `clew-layer` reports new hard links. An access to a known file under another
name shows that there is one.
"""

from collections.abc import Mapping

from clew.witness.volumes.accesses import FileAccess
from clew.witness.volumes.file_versions import CurrentFile


class FileNames:
    """The name under which each file of a volume was first met or last written."""

    def __init__(self, files: Mapping[bytes, CurrentFile]) -> None:
        """`files`: what is known of the volume, by path; it may change."""
        self._files = files
        self._names = {file.handle: path for path, file in files.items() if file.handle}

    def note(self, access: FileAccess) -> None:
        """The file is known by this name."""
        name = self._names.get(access.handle)
        known = None if name is None else self._files.get(name)
        if known is None or known.handle != access.handle or access.written:
            self._names[access.handle] = access.path

    def find_other(self, access: FileAccess) -> tuple[bytes, CurrentFile] | None:
        """The name that tells more of the file than the one that is accessed; None if there is
        none. A file that was removed meanwhile has another handle than its successor."""
        name, here = self._names.get(access.handle), self._files.get(access.path)
        there = None if name is None else self._files.get(name)
        if name is None or name == access.path or there is None or there.handle != access.handle:
            return None
        if there.open or not (access.written or there.is_as(access.state)):
            return None
        same = here is not None and here.handle == access.handle and here.is_as(there.state)
        return None if same and here is not None and here.maker is not None else (name, there)


def has_links(access: FileAccess) -> bool:
    """Whether the file is known to have more than one name."""
    return access.state is not None and access.state.links > 1
