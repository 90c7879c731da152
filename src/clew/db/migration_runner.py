"""Apply the schema migrations `migrations/NNNN.sql` in order.

The files are written once for both databases. Types that differ are in braces: `{id}` a 64-bit
primary key, `{int}` a 64-bit number, `{float}` a double, `{bytes}` raw bytes,
`{clustered}` after a table whose rows are stored in the order of its primary key.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from clew.errors import ClewError

LATEST = 18
"""The newest version; a test compares it with the files."""

_DIRECTORY = Path(__file__).parent / "migrations"


def read_statements(version: int, words: Mapping[str, str]) -> list[str]:
    """Read the statements of one migration; `words` gives the types of the database."""
    text = (_DIRECTORY / f"{version:04}.sql").read_text()
    for word, meaning in words.items():
        text = text.replace("{" + word + "}", meaning)
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [part.strip() for part in bare.split(";") if part.strip()]


def check_version(found: int, where: str) -> None:
    """Raise an error if a newer Clew wrote the database."""
    if found > LATEST:
        raise ClewError(
            f"{where} has schema {found}; this Clew knows up to {LATEST}",
            hint="pip install --upgrade clew",
        )


def apply_migrations(found: int, words: Mapping[str, str], run: Callable[[str], object]) -> None:
    """Run every migration after `found`; the caller holds the lock and the transaction."""
    for version in range(found + 1, LATEST + 1):
        for statement in read_statements(version, words):
            run(statement)
