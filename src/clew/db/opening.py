"""Open the database the settings name, at the schema this program knows."""

from __future__ import annotations

from pathlib import Path

from clew.db.connections import Connection


def connect(path: Path, *, address: str | None = None) -> Connection:
    """The project's own SQLite file, or the PostgreSQL database at `address`."""
    if address is None:
        from clew.db.sqlite import SQLite

        return SQLite(path)
    from clew.db.postgres import PostgreSQL

    return PostgreSQL(address)
