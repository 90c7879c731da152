"""The format documents name every field and column there is, and none that is not."""

import re
import sqlite3
from pathlib import Path

import msgspec

from clew.db import Connection, connect, migration_runner
from clew.prov import events, tables
from clew.prov.cluster.facets import FACET_TYPES

FORMATS = Path(__file__).parents[3] / "docs" / "formats"


def sections(file: str) -> dict[str, list[str]]:
    """Heading → the first column of the tables below it."""
    found: dict[str, list[str]] = {}
    heading = ""
    for line in (FORMATS / file).read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif row := re.match(r"\| `(\w+)` \|", line):
            found.setdefault(heading, []).append(row[1])
    return found


def test_every_event_and_field_is_documented() -> None:
    written = sections("events.md")
    common = written["Every event"]
    assert written.pop("Kinds and facets of a cluster") == list(FACET_TYPES)
    for kind in events.AnyEvent.__args__:
        tag = kind.__struct_config__.tag
        fields = [field.name for field in msgspec.structs.fields(kind)]
        assert sorted(common + written.pop(tag)) == sorted(fields), tag
    version = [field.name for field in msgspec.structs.fields(events.Version)]
    assert written == {"Every event": common, "Versions": version}
    assert frozenset(k.__struct_config__.tag for k in events.AnyEvent.__args__) == events.TYPES


def test_every_table_and_column_is_documented(tmp_path: Path) -> None:
    connect(tmp_path / "g.db").close()
    raw = sqlite3.connect(tmp_path / "g.db")
    names = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    real = {name: [c[1] for c in raw.execute(f"PRAGMA table_info({name})")] for name in names}
    raw.close()
    written = sections("graph.md")
    assert {table: written.get(table) for table in real} == real
    assert {table: list(columns) for table, columns in tables.COLUMNS.items()} == {
        table: columns for table, columns in real.items() if table in tables.COLUMNS
    }


def test_both_databases_have_the_same_columns(connection: Connection) -> None:
    for table, columns in sections("graph.md").items():
        if table in tables.COLUMNS:
            assert connection.rows(f"SELECT {', '.join(columns)} FROM {table}") == []


def test_the_document_names_the_schema() -> None:
    title = (FORMATS / "graph.md").read_text().splitlines()[0]
    assert title.endswith(f"schema {migration_runner.LATEST}")
