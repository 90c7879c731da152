"""Open the database the settings name, at the schema this program knows."""

from pathlib import Path

from clew.db.connection_interface import Connection
from clew.errors import UsageError

PATIENCE = 30.0
"""Seconds that PostgreSQL may take for a statement: more than any statement of Clew needs."""


def connect(
    path: Path, *, address: str | None = None, cache: int = 64, patience: float = PATIENCE
) -> Connection:
    """The project's own SQLite file, or the PostgreSQL database at `address`. `cache`: how many
    MB of the file are kept in memory at most. `patience`: seconds that PostgreSQL may take for a
    statement; then the connection counts as lost."""
    if address is None:
        from clew.db.sqlite import SQLite

        return SQLite(path, cache=cache)
    try:
        from clew.db.postgres import PostgreSQL
    except ImportError as error:
        raise UsageError(
            "CLEW_GRAPH names a PostgreSQL database, and its driver is not installed",
            hint="pip install 'clew[postgres]'",
        ) from error

    return PostgreSQL(address, patience=patience)
