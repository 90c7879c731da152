"""The store's index: a SQLite file that locates chunks in packs, and maps signatures to digests.

It is written only after the packs it names are synced, and can be rebuilt from them. All SQL of the
store is in this module.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from clew.store.errors import from_sqlite
from clew.store.packs.pack_format import HOLE, Chunk, FileRecord, Table, pack_parts, unpack_parts
from clew.store.types import Signature

VERSION = 1
_BUSY_TIMEOUT = 120.0  # seconds; transactions are short, but a disk may be slow

_TABLES = """
CREATE TABLE IF NOT EXISTS packs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS blocks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, pack INTEGER NOT NULL, position INTEGER NOT NULL,
  stored INTEGER NOT NULL, length INTEGER NOT NULL, codec INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS blocks_of_pack ON blocks (pack);
CREATE TABLE IF NOT EXISTS chunks (
  digest BLOB PRIMARY KEY, block INTEGER NOT NULL, start INTEGER NOT NULL,
  length INTEGER NOT NULL, whole INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
  digest BLOB PRIMARY KEY, size INTEGER NOT NULL, kind INTEGER NOT NULL,
  pack INTEGER NOT NULL, parts BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stats (
  dev INTEGER, ino INTEGER, size INTEGER NOT NULL, mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
  digest BLOB NOT NULL, PRIMARY KEY (dev, ino)) WITHOUT ROWID;
"""


def _known(count: int) -> str:
    marks = ",".join("?" * count)
    return (
        f"SELECT digest, 1 FROM files WHERE digest IN ({marks}) "  # noqa: S608
        f"UNION ALL SELECT digest, whole FROM chunks WHERE digest IN ({marks})"
    )


def _remembered(count: int) -> str:
    rows = ",".join(f"({at},?,?,?,?,?)" for at in range(count))
    return (
        f"WITH asked (at, dev, ino, size, mtime, ctime) AS (VALUES {rows}) "  # noqa: S608
        "SELECT at, digest, "
        "coalesce((SELECT 1 FROM chunks c WHERE c.digest = s.digest AND whole), "
        "(SELECT 1 FROM files f WHERE f.digest = s.digest), 0) "
        "FROM asked CROSS JOIN stats s USING (dev, ino, size, mtime, ctime)"  # looked up one by one
    )


_UNSIGNED = 1 << 63
_BATCH = 128
_KNOWN = {count: _known(count) for count in (1, _BATCH)}
_REMEMBERED = {count: _remembered(count) for count in (1, _BATCH)}
"""Statements for one and for many values, so that they can be prepared."""
_PLACE = """
SELECT b.id, p.name, b.position, b.stored, b.length, b.codec, c.start, c.length
FROM chunks c JOIN blocks b ON b.id = c.block JOIN packs p ON p.id = b.pack WHERE c.digest = ?
"""


class ChunkLocation(NamedTuple):
    """The position of a chunk in a pack."""

    block: int
    pack: str
    position: int
    stored: int
    length: int
    codec: int
    start: int
    size: int


class Index:
    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        with self._errors():
            self._db = _connect(path, read_only=read_only)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise from_sqlite(error, where=os.fspath(self.path)) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, synced at the end and rolled back on an error."""
        with self._errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the same state, whatever other processes write meanwhile."""
        with self._errors():
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # the file may be damaged
                self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close()

    # -- look up

    def known(self, digests: Sequence[bytes]) -> Iterator[tuple[bytes, bool]]:
        """Those that are stored; True: as a content, False: only as a part of contents."""
        whole: dict[bytes, bool] = {}
        with self._errors():
            for batch in _batches(digests):
                for digest, is_whole in self._db.execute(_KNOWN[len(batch)], (*batch, *batch)):
                    whole[digest] = bool(is_whole) or whole.get(digest, False)
        yield from whole.items()

    def has(self, digest: bytes) -> bool:
        return any(whole for _, whole in self.known([digest]))

    def remembered(self, signatures: Sequence[Signature]) -> list[tuple[bytes, bool] | None]:
        """The digest of the file that had exactly this signature, and whether it is stored."""
        digests: list[tuple[bytes, bool] | None] = [None] * len(signatures)
        wanted = [s if s.ino < _UNSIGNED else s._replace(ino=_signed(s.ino)) for s in signatures]
        start = 0
        with self._errors():
            for batch in _batches(wanted, blank=(None,) * len(Signature._fields)):
                values = tuple(chain.from_iterable(batch))
                for at, digest, stored in self._db.execute(_REMEMBERED[len(batch)], values):
                    digests[start + at] = digest, bool(stored)
                start += len(batch)
        return digests

    def locate(self, digest: bytes) -> ChunkLocation | None:
        with self._errors():
            row = self._db.execute(_PLACE, (digest,)).fetchone()
        return None if row is None else ChunkLocation(*row)

    def file(self, digest: bytes) -> tuple[int, int, bytes] | None:
        """(size, kind, parts) of a content that is more than one chunk."""
        with self._errors():
            row = self._db.execute(
                "SELECT size, kind, parts FROM files WHERE digest = ?", (digest,)
            ).fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def chunk_size(self, digest: bytes) -> int | None:
        """The size of a content that is one chunk."""
        with self._errors():
            row = self._db.execute(
                "SELECT length FROM chunks WHERE digest = ? AND whole", (digest,)
            ).fetchone()
        return None if row is None else int(row[0])

    # -- list everything, for fsck and gc

    def integrity(self) -> list[str]:
        """Errors that SQLite finds in the file itself."""
        messages = [str(row[0]) for row in self._all("PRAGMA integrity_check")]
        return [] if messages == ["ok"] else messages

    def packs(self) -> list[tuple[int, str, int]]:
        return self._all("SELECT id, name, size FROM packs ORDER BY id")

    def blocks(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(id, pack, position, stored, length, codec), in the order of the packs."""
        with self._errors():
            yield from self._db.execute(
                "SELECT id, pack, position, stored, length, codec FROM blocks ORDER BY id"
            )

    def chunks(self) -> Iterator[tuple[int, bytes, int, int]]:
        """(block, digest, start, length), in the order of the packs."""
        with self._errors():
            yield from self._db.execute(
                "SELECT block, digest, start, length FROM chunks ORDER BY block, start"
            )

    def files(self) -> list[bytes]:
        return [row[0] for row in self._all("SELECT digest FROM files")]

    def digests(self) -> list[bytes]:
        """Every chunk and file."""
        sql = "SELECT digest FROM files UNION SELECT digest FROM chunks"
        return [row[0] for row in self._all(sql)]

    def contents(self) -> list[bytes]:
        """Every content by its digest."""
        sql = "SELECT digest FROM files UNION SELECT digest FROM chunks WHERE whole"
        return [row[0] for row in self._all(sql)]

    def shares(self) -> Iterator[tuple[bytes, int, int, int, int]]:
        """(digest, pack, length, the block's stored bytes, the block's length) of each chunk."""
        with self._errors():
            yield from self._db.execute(
                "SELECT c.digest, b.pack, c.length, b.stored, b.length "
                "FROM chunks c JOIN blocks b ON b.id = c.block"
            )

    def records(self) -> list[tuple[bytes, int, int]]:
        """(digest, pack, bytes) of each file record."""
        return self._all("SELECT digest, pack, length(parts) FROM files")

    def chunks_in(self, packs: set[int]) -> Iterator[tuple[int, bytes, bool]]:
        """(pack, digest, whole) of the chunks in these packs, in the order of the packs."""
        with self._errors():
            for pack, digest, whole in self._db.execute(
                "SELECT b.pack, c.digest, c.whole FROM chunks c JOIN blocks b ON b.id = c.block "
                "ORDER BY b.id, c.start"
            ).fetchall():
                if pack in packs:
                    yield pack, digest, bool(whole)

    def files_of_pack(self, pack: int) -> list[FileRecord]:
        rows = self._all("SELECT digest, size, kind, parts FROM files WHERE pack = ?", pack)
        return [FileRecord(*row) for row in rows]

    def _all(self, sql: str, *values: object) -> list[Any]:
        with self._errors():
            return self._db.execute(sql, values).fetchall()

    # -- writing, inside `writing`

    def add_pack(self, db: sqlite3.Connection, name: str, size: int, table: Table) -> None:
        """Add a synced pack. Chunks that are known already keep their location."""
        row = db.execute("INSERT INTO packs (name, size) VALUES (?, ?)", (name, size))
        pack = row.lastrowid
        for block in table.blocks:
            number = db.execute(
                "INSERT INTO blocks (pack, position, stored, length, codec) VALUES (?, ?, ?, ?, ?)",
                (pack, *block[:4]),
            ).lastrowid
            start = 0
            rows: list[tuple[object, ...]] = []
            for chunk in block.chunks:
                rows.append((chunk.digest, number, start, chunk.length, chunk.whole))
                start += chunk.length
            new = db.executemany("INSERT OR IGNORE INTO chunks VALUES (?, ?, ?, ?, ?)", rows)
            if new.rowcount < len(rows):
                self._add_records(db, block.chunks, pack)
        db.executemany(
            "INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?, ?)",
            ((f.digest, f.size, f.kind, pack, f.parts) for f in table.files),
        )
        db.executemany(
            "UPDATE files SET kind = ?2 WHERE digest = ?1 AND kind < ?2",
            ((f.digest, f.kind) for f in table.files if f.kind),
        )

    def _add_records(self, db: sqlite3.Connection, chunks: list[Chunk], pack: int | None) -> None:
        """Add a record for a content whose chunk was known only as a part of others."""
        db.executemany(
            "INSERT OR IGNORE INTO files SELECT digest, length, 0, ?, ? FROM chunks "
            "WHERE digest = ? AND NOT whole",
            ((pack, pack_parts([c[:2]]), c.digest) for c in chunks if c.whole),
        )

    def remember(self, db: sqlite3.Connection, digests: Iterable[tuple[Signature, bytes]]) -> None:
        db.executemany(
            "INSERT OR REPLACE INTO stats (dev, ino, size, mtime, ctime, digest) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            ((s.dev, _signed(s.ino), s.size, s.mtime, s.ctime, d) for s, d in digests),
        )

    def drop(self, db: sqlite3.Connection, *, packs: set[int], digests: Iterable[bytes]) -> None:
        """Forget packs with their content, and chunks and files in any pack.

        The bytes of a forgotten chunk stay in its pack until the pack is removed.
        """
        db.execute("CREATE TEMP TABLE dropped_packs (pack INTEGER PRIMARY KEY)")
        db.execute("CREATE TEMP TABLE dead (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        db.executemany("INSERT INTO dropped_packs VALUES (?)", ((pack,) for pack in packs))
        db.executemany("INSERT INTO dead VALUES (?)", ((digest,) for digest in digests))
        db.execute(
            "DELETE FROM chunks WHERE block IN "
            "(SELECT b.id FROM blocks b JOIN dropped_packs g ON g.pack = b.pack)"
        )
        for table in ("files", "blocks"):
            db.execute(f"DELETE FROM {table} WHERE pack IN (SELECT pack FROM dropped_packs)")  # noqa: S608
        db.execute("DELETE FROM packs WHERE id IN (SELECT pack FROM dropped_packs)")
        for table in ("chunks", "files", "stats"):
            db.execute(f"DELETE FROM {table} WHERE digest IN (SELECT digest FROM dead)")  # noqa: S608
        db.execute("DROP TABLE dropped_packs")
        db.execute("DROP TABLE dead")

    def clear(self, db: sqlite3.Connection) -> None:
        """Forget all packs; the digests of known files stay."""
        for table in ("packs", "blocks", "chunks", "files"):
            db.execute(f"DELETE FROM {table}")  # noqa: S608

    def drop_empty_packs(self, db: sqlite3.Connection) -> None:
        """Forget packs without content."""
        db.execute("DELETE FROM blocks WHERE id NOT IN (SELECT block FROM chunks)")
        db.execute(
            "DELETE FROM packs WHERE id NOT IN (SELECT pack FROM blocks) "
            "AND id NOT IN (SELECT pack FROM files)"
        )

    def drop_dangling(self, db: sqlite3.Connection) -> None:
        """Forget files that lack a chunk."""
        bad = []
        for digest, parts in db.execute("SELECT digest, parts FROM files"):
            for part, _ in unpack_parts(parts):
                if (
                    part != HOLE
                    and not db.execute("SELECT 1 FROM chunks WHERE digest = ?", (part,)).fetchone()
                ):
                    bad.append((digest,))
                    break
        db.executemany("DELETE FROM files WHERE digest = ?", bad)


def _batches(values: Sequence[Any], *, blank: object = None) -> Iterator[tuple[Any, ...]]:
    """Single values if they are few, else batches that are padded with blanks."""
    if len(values) <= 8:
        for value in values:
            yield (value,)
        return
    for i in range(0, len(values), _BATCH):
        batch = tuple(values[i : i + _BATCH])
        yield batch + (blank,) * (_BATCH - len(batch))


def _signed(number: int) -> int:
    """Inode numbers are unsigned, SQLite's integers are signed."""
    return number if number < _UNSIGNED else number - (1 << 64)


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
    db = sqlite3.connect(
        address, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_TIMEOUT
    )
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if not read_only:
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA cache_size = -32768")
            if version < VERSION:
                _use_wal(db)
                db.executescript(
                    f"BEGIN IMMEDIATE; {_TABLES}; PRAGMA user_version = {VERSION}; COMMIT"
                )
    except BaseException:
        db.close()
        raise
    return db


def _use_wal(db: sqlite3.Connection) -> None:
    """Change the mode, which does not wait by itself for another process that also does it."""
    until = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)


def open_in_memory() -> Index:
    """An index for a store that cannot be written; filled from the packs by the caller."""
    index = Index.__new__(Index)
    index.path = Path(":memory:")
    index.read_only = False
    index._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    index._db.executescript(_TABLES)
    return index
