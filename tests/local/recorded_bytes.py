"""Everything that a project keeps, to look for what must not be in it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from tests.driver import Project

from clew.store import Store


def read_recorded_bytes(project: Project) -> Iterator[tuple[str, bytes]]:
    """Every byte under `.clew`: the files, what is stored in packs, what the graph holds."""
    hidden = project.folder / ".clew"
    for path in hidden.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()
    with Store(hidden / "store") as store:
        for digest in store._index.contents():
            name = f"blake3:{digest.hex()}"
            yield name, b"".join(store.read(name))
    with closing(sqlite3.connect(hidden / "graph.db")) as graph:
        for line in graph.iterdump():
            yield "graph", line.encode()
