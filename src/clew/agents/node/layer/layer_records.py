"""Records of `clew-layer` as accesses. `native/layer/access_log.c` writes them."""

import struct
from collections.abc import Iterator

from clew.documents.ids import Uid
from clew.witness.volumes.accesses import Access, FileAccess, FileRemoval, FileRename, FileState

_RECORD = struct.Struct("<IIIIqqqqIIII")
_CLOSED, _REMOVED, _RENAMED = 1, 2, 3
_READS, _WRITES, _MODIFIED, _TRUNCATED, _APPENDS, _DIRECTORY = 1, 2, 4, 8, 16, 32
MAX_RECORD = 1 << 17


class LayerRecords:
    """Parses the records of one layer, which arrive in pieces."""

    def __init__(self, container: Uid, volume: str, prefix: bytes) -> None:
        self._container = container
        self._volume = volume
        self._prefix = prefix
        self._rest = b""

    def parse(self, data: bytes, at: int) -> Iterator[Access]:
        """The accesses of whole records. `at`: when they were read, later than all of them."""
        data, offset, number = self._rest + data, 0, 0
        while offset + _RECORD.size <= len(data):
            length = int.from_bytes(data[offset : offset + 4], "little")
            if not _RECORD.size <= length <= MAX_RECORD:
                raise ValueError("a record of a layer has no length")
            if offset + length > len(data):
                break
            yield self._access(data[offset : offset + length], at + number)
            offset, number = offset + length, number + 1
        self._rest = data[offset:]

    def _access(self, record: bytes, at: int) -> Access:
        fields = _RECORD.unpack_from(record)
        _, kind, flags, links, opened, size, mtime, ctime, mode, handle_size, path_size, _ = fields
        end = _RECORD.size + handle_size
        handle = record[_RECORD.size : end]
        path = self._prefix + record[end : end + path_size]
        target = self._prefix + record[end + path_size :]
        state = FileState(size=size, mtime=mtime, ctime=ctime, mode=mode, links=links)
        if kind == _REMOVED:
            return FileRemoval(
                at=at, container=self._container, volume=self._volume, path=path, handle=handle
            )
        if kind == _RENAMED:
            return FileRename(
                at=at,
                container=self._container,
                volume=self._volume,
                path=path,
                target=target,
                handle=handle,
                directory=bool(flags & _DIRECTORY),
                state=state if mode else None,
            )
        written = bool(flags & _WRITES and flags & _MODIFIED)
        return FileAccess(
            at=at if written else opened,
            container=self._container,
            volume=self._volume,
            path=path,
            handle=handle,
            read=bool(flags & _READS) and not (written and flags & _TRUNCATED),
            written=written,
            kept=not flags & _TRUNCATED,
            state=state if mode else None,
        )
