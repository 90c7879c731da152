"""Read untrusted tar archives, with a limit on their headers.

`tarfile` parses extended headers (pax records, long names, maps of sparse files) of any size,
record by record, and applies each global one to every member: a small archive can take hours. The
contents of members are not limited here; callers read as much of them as they want.
"""

from __future__ import annotations

import tarfile
from typing import NoReturn

_PLAIN = (*tarfile.REGULAR_TYPES, tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE)
_MOST_GLOBAL = 1024


class _Member(tarfile.TarInfo):
    def _proc_member(self, archive: BoundedTar) -> tarfile.TarInfo:
        """Called for each header, before it is parsed."""
        archive.count_header(self)
        # The source of tarfile tells subclasses to override this; typeshed leaves it out.
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return found

    def _refuse_sparse(self, *_: object) -> NoReturn:
        raise tarfile.ReadError("sparse files are not supported")

    _proc_sparse = _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _refuse_sparse


class BoundedTar(tarfile.TarFile):
    """A `TarFile` that raises `tarfile.ReadError` when its headers exceed these limits."""

    tarinfo = _Member
    most_members = 1000
    most_extended = 1 << 20
    """Bytes of all extended headers together."""
    _members = _extended = _global = 0

    def count_header(self, header: tarfile.TarInfo) -> None:
        if header.type in _PLAIN:
            self._members += 1
        else:
            self._extended += tarfile.BLOCKSIZE + header.size
        if header.type == tarfile.XGLTYPE:
            self._global += header.size
        if self._members > self.most_members:
            raise tarfile.ReadError("it holds too many files")
        if self._extended > self.most_extended or self._global > _MOST_GLOBAL:
            raise tarfile.ReadError("its headers are too long")
