"""Name a database in a sentence, without its password."""

from pathlib import Path


def name_database(path: Path, address: str | None) -> str:
    """`SQLite, FILE`, or `PostgreSQL, database NAME on HOST`."""
    if address is None:
        return f"SQLite, {path}"
    from psycopg import ProgrammingError, conninfo  # late: SQLite needs no PostgreSQL

    try:
        given = conninfo.conninfo_to_dict(address)
    except ProgrammingError:
        return "PostgreSQL"
    name = given.get("dbname") or given.get("user") or "postgres"
    return f"PostgreSQL, database {name} on {given.get('host') or 'this machine'}"
