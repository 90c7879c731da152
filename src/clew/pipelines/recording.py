"""A run in the graph: it and its tasks as activities, told as they happen.

What a task read and wrote is told by the execution that ran it; its activity adds what only the
pipeline knows: its parameters, which file is which artifact, and how it ended.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from typing import Any

from clew import db
from clew.errors import ClewError
from clew.folder import Folder
from clew.pipelines.scopes import Artifact, Node, Values
from clew.prov.events import AnyEvent, Ended, Started
from clew.prov.graph import Graph
from clew.prov.questions.targets import resolve
from clew.run import locks
from clew.settings import Settings, machine_id
from clew.witness import environment


class Recorder:
    """Tells the graph of one run. The lock it holds says that the run goes on."""

    def __init__(self, folder: Folder, settings: Settings) -> None:
        self.uid = os.urandom(16).hex()
        self.number = 0
        self._folder = folder
        self._settings = settings
        self._n = 0
        self._begun: set[str] = set()
        self._lock = locks.hold(folder, self.uid)

    def close(self) -> None:
        shutil.rmtree(self._folder.spool / self.uid, ignore_errors=True)
        os.close(self._lock)

    @property
    def id(self) -> str:
        return f"r{self.number}"

    def begin(self) -> None:
        """Give the run its number."""
        with self._graph() as graph:
            self.number = graph.begin_run(self.uid)

    def started(self, name: str, file: str, inputs: Values, tasks: Sequence[str]) -> None:
        facets = {
            "pipeline": name,
            "file": file,
            "inputs": inputs.parameters,
            "tasks": list(tasks),
        }
        self._tell(
            Started(
                **self._next(),
                activity=self.uid,
                kind="run",
                agent=environment.user_name(os.getuid()),
                facets=facets,
            )
        )

    def ended(self, state: str, outputs: Values, error: str | None) -> None:
        told = {**outputs.parameters, **_shown(outputs.artifacts)}
        status = 0 if state == "succeeded" else 1
        facets = {"state": state, "outputs": told, "error": error}
        self._tell(Ended(**self._next(), activity=self.uid, status=status, facets=facets))

    def task_started(self, node: Node) -> None:
        self._tell(*self._task_started(node))

    def task_over(self, node: Node, executions: Sequence[dict[str, Any]], why: str | None) -> None:
        """How it ended, with the executions of all its attempts."""
        started = self._task_started(node)
        with self._graph() as graph:
            last = executions[-1] if executions else {}
            facets = {
                "state": node.state,
                "outputs": node.outputs.parameters,
                "artifacts": {
                    name: [self._artifact(graph, one, last.get("id")) for one in found]
                    for name, found in node.outputs.artifacts.items()
                },
                "executions": [one["uid"] for one in executions if one.get("uid")],
                "why": why,
                "error": node.error,
            }
            ended = Ended(
                **self._next(),
                activity=self._activity(node),
                status=last.get("status"),
                facets=facets,
            )
            graph.fold([*started, ended])

    def _task_started(self, node: Node) -> list[AnyEvent]:
        if node.path in self._begun:
            return []
        self._begun.add(node.path)
        facets = {
            "parameters": node.inputs.parameters,
            "artifacts": _shown(node.inputs.artifacts),
        }
        return [
            Started(
                **self._next(),
                activity=self._activity(node),
                kind="task",
                parent=self.uid,
                name=node.path,
                facets=facets,
            )
        ]

    def _activity(self, node: Node) -> str:
        return f"{self.uid}/{node.path}"

    def _artifact(self, graph: Graph, one: Artifact, execution: str | None) -> dict[str, Any]:
        """An artifact with what the execution that made it knows of its file."""
        path = str(one.get("custom_path") or one["uri"])
        found = None
        if execution and path.startswith("/"):
            with contextlib.suppress(ClewError):
                found = resolve(
                    graph,
                    f"{execution}:{path}",
                    machine=machine_id(self._settings),
                    locate=os.path.realpath,
                    digest_of=lambda _: None,
                )
        return {
            "uri": one["uri"],
            "type": one["type"]["schemaTitle"],
            "digest": found.digest if found else None,
            "size": found.size if found else None,
            "metadata": one.get("metadata") or {},
            "version": found.label if found else None,
        }

    def _next(self) -> dict[str, Any]:
        self._n += 1
        return {"execution": self.uid, "n": self._n, "at": time.time_ns()}

    def _tell(self, *events: AnyEvent) -> None:
        if events:
            with self._graph() as graph:
                graph.fold(events)

    @contextlib.contextmanager
    def _graph(self) -> Iterator[Graph]:
        with db.connect(self._folder.graph, address=self._settings.graph) as connection:
            yield Graph(connection, self._folder.uid)


def _shown(artifacts: dict[str, list[Artifact]]) -> dict[str, list[dict[str, Any]]]:
    return {
        name: [{"uri": one["uri"], "type": one["type"]["schemaTitle"]} for one in found]
        for name, found in artifacts.items()
    }
