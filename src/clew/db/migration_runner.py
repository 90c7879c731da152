"""The schema's versions: `migrations/NNNN.sql`, applied in order, each whole or not at all.

The files are written once for both databases; what the two call differently stands in
braces: `{id}` a 64-bit primary key, `{int}` a 64-bit number, `{bytes}` raw bytes,
`{clustered}` after a table whose rows lie in the order of its primary key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clew.errors import ClewError

KNOWN = 9
"""The newest version this program knows; a test holds it against the files."""

_DIRECTORY = Path(__file__).parent / "migrations"


def statements(version: int, words: Mapping[str, str]) -> list[str]:
    """One migration's statements in the words of one database."""
    text = (_DIRECTORY / f"{version:04}.sql").read_text()
    for word, meaning in words.items():
        text = text.replace("{" + word + "}", meaning)
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [part.strip() for part in bare.split(";") if part.strip()]


def refuse_newer(found: int, where: str) -> None:
    """A newer Clew wrote this: reading it with less knowledge would lie."""
    if found > KNOWN:
        raise ClewError(
            f"{where} has schema {found}; this Clew knows up to {KNOWN}",
            hint="pip install --upgrade clew",
        )


def upgrade(found: int, words: Mapping[str, str], run: Callable[[str], object]) -> None:
    """Run every migration after `found`; the caller holds the lock and the transaction."""
    for version in range(found + 1, KNOWN + 1):
        for statement in statements(version, words):
            run(statement)
