"""The database: one connection, one set of migrations, SQLite or PostgreSQL.

Inside belong opening, transactions, retries, the translation of drivers' errors, and the
numbered migrations. No question and no business rule may enter: a room's SQL stands in that
room's own tables and queries modules. Every room above may import this one; it knows none of them.
"""

from __future__ import annotations

from clew.db.connect import connect
from clew.db.connection import Connection

__all__ = ["Connection", "connect"]
