"""The store's index."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clew.store import index
from clew.store.index import Index


def test_a_new_index_is_opened_while_another_process_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself does not wait for the other one when it changes the journal mode."""
    path = tmp_path / "index"
    waited = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            other.execute("ROLLBACK")

        monkeypatch.setattr(index.time, "sleep", sleep)
        with closing(Index(path)) as opened:
            assert opened.path == path
    assert len(waited) == 1
