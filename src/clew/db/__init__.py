"""The database: connections to SQLite or PostgreSQL, and the migrations.

Contains connections, transactions, retries and the translation of drivers' errors. Never contains
queries or rules: each package keeps its SQL in its own modules. Imported by `prov` and above.
"""

from clew.db.connect import PATIENCE, connect
from clew.db.connection_interface import Connection

__all__ = ["PATIENCE", "Connection", "connect"]
