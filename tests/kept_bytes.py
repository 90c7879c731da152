"""Everything that projects and agents keep below a directory, as plain bytes.

Batches, packs and spools are compressed, so a search in the files themselves proves nothing.
"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import zstandard

from clew.agents.spool import MAX_BATCH_BYTES
from clew.documents.ids import Digest
from clew.store import Store
from clew.store.index import Index


def read_kept(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each thing with what it is: a file as it is on disk, a batch of events, a stored content, a
    table of a database."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # an agent has delivered it meanwhile
            continue
        yield f"file {path}", data
        if path.suffix == ".batch":
            batch = zstandard.ZstdDecompressor().decompress(data, max_output_size=MAX_BATCH_BYTES)
            yield f"batch {path}", batch
        elif path.name == "index.db" and (path.parent / "packs").is_dir():
            yield from _read_store(path.parent)
        elif data.startswith(b"SQLite format 3\0"):
            yield from _read_tables(path)


def _read_store(folder: Path) -> Iterator[tuple[str, bytes]]:
    index = Index(folder / "index.db", read_only=True)
    digests = [Digest(f"blake3:{digest.hex()}") for digest in index.contents()]
    index.close()
    with Store(folder) as store:
        for digest in digests:
            yield f"content {digest} of {folder}", b"".join(store.read(digest))


def _read_tables(path: Path) -> Iterator[tuple[str, bytes]]:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()
            yield f"table {table} of {path}", repr(rows).encode()
    finally:
        database.close()
