"""A project on either database, to which executions and runs are added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew import project_directory, settings
from clew.api.local.project import LocalProject
from clew.prov.events import Ended, Started
from clew.server.catalogue.activities.conditions import parse_conditions
from clew.server.catalogue.activities.index import refresh_index
from clew.server.catalogue.activities.selection import select_activities
from clew.server.catalogue.activities.sort_order import parse_sorting
from clew.store import Store

SECOND = 10**9


class ManyActivities:
    """Adds executions and runs with metrics, and lists them."""

    def __init__(self, project: LocalProject) -> None:
        self.project = project
        self._count = 0

    def add_execution(
        self, *words: str, status: int = 0, stderr: str = "", ended: bool = True, **metrics: Any
    ) -> str:
        """The uid of a new execution of `train.py WORDS` that wrote these metrics."""
        self._count += 1
        uid = f"{self._count:08x}" * 4
        at = self._count * 10 * SECOND
        builder = ExecutionBuilder(uid, at=at, command=("train.py", *words))
        process = builder.process("train.py", *words)
        files = {"/w/metrics.json": json.dumps(metrics)} if metrics else {}
        if stderr:
            files[f"stream://{uid}/stderr"] = stderr
        with Store(self.project.directory.store) as store:
            for path, text in files.items():
                store.put_bytes(text.encode())
                builder.write(process, path, text)
        if ended:
            builder.end(status, processes=1, inputs=0, outputs=len(files), bytes=0)
        self.project.graph.fold(builder.events)
        return uid

    def add_run(self, state: str = "succeeded", error: str | None = None, **metrics: Any) -> str:
        """The uid of a new run with one task, which logged these metrics."""
        self._count += 1
        uid = f"{self._count:08x}" * 4
        at = self._count * 10 * SECOND
        task = f"{uid}/train"
        artifact = {"uri": "x", "type": "system.Metrics", "metadata": metrics}
        run_facets = {"pipeline": "iris", "inputs": {"lr": 0.5, "layers": [1, 2]}}
        started = Started(execution=uid, n=1, at=at, activity=uid, kind="run", facets=run_facets)
        self.project.graph.fold(
            [
                started,
                Started(execution=uid, n=2, at=at, activity=task, kind="task", name="train"),
                Ended(
                    execution=uid, n=3, at=at + SECOND, activity=task,
                    facets={"state": state, "error": error, "artifacts": {"m": [artifact]}},
                ),
                Ended(
                    execution=uid, n=4, at=at + 2 * SECOND, activity=uid, facets={"state": state}
                ),
            ]
        )  # fmt: skip
        return uid

    def refresh(self, **options: Any) -> int:
        return refresh_index(self.project, **options)

    def ids(self, query: str = "", sort: str = "started", order: Any = "desc", **more: Any) -> str:
        """The ids of those that match, after a refresh."""
        self.refresh()
        conditions = parse_conditions(query, **more)
        sorting = parse_sorting(sort, order)
        graph = self.project.graph
        found: list[str] = []
        after = None
        while True:
            page = select_activities(graph, conditions, sorting, limit=2, after=after)
            found += [activity.id for activity in page.activities]
            if (after := page.next) is None:
                return " ".join(found)


@pytest.fixture
def many(tmp_path: Path, database: tuple[Path, str | None]) -> Iterator[ManyActivities]:
    _, address = database
    root = tmp_path / "project"
    root.mkdir()
    options = replace(settings.load(), graph=address)
    project = LocalProject(project_directory.init(root, options), options)
    yield ManyActivities(project)
    project.close()
