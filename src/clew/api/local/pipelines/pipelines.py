"""The pipelines of a local project: each method calls `clew.pipelines.runs`, loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.parameter_types import Say, StrPath, ignore_message
from clew.api.pipelines import Pipelines

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.documents.comparisons.differences import RunDiff
    from clew.documents.executions.repeats import RepeatedRun
    from clew.documents.ids import TaskId, Uid
    from clew.documents.pipelines.runs import LogPart, Run, RunWithCounts, RunWithTasks, Task, Why
    from clew.pipelines.runner.run_types import Change, ClusterOptions


class LocalPipelines(Pipelines):
    """See `clew.api.project.Pipelines`."""

    def __init__(self, project: ProjectState) -> None:
        self._project = project

    def run(
        self,
        file: StrPath,
        parameters: Mapping[str, str] | None = None,
        *,
        jobs: int | None = None,
        reuse: bool = True,
        on_host: bool = False,
        platform: StrPath | None = None,
        cluster: ClusterOptions | None = None,
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        from clew.pipelines.runner.run_types import RunOptions
        from clew.pipelines.runs.perform import run_file

        id_ = run_file(
            self._project,
            Path(fspath(file)),
            parameters or {},
            RunOptions(
                jobs=jobs,
                reuse=reuse,
                on_host=on_host,
                platform=fspath(platform) if platform else None,
                cluster=cluster,
                say=say,
                watch=watch,
            ),
        )
        return self._show_briefly(id_) if brief else self.show(id_)

    def resume(
        self,
        id: str,  # noqa: A002
        *,
        jobs: int | None = None,
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        from clew.pipelines.runs.perform import resume_run

        id_ = resume_run(self._project, id, jobs=jobs, say=say, watch=watch)
        return self._show_briefly(id_) if brief else self.show(id_)

    def cancel(self, id: str) -> RunWithTasks:  # noqa: A002
        from clew.pipelines.runs.perform import cancel_and_wait

        cancel_and_wait(self._project, id)
        return self.show(id)

    def why(self, id: str) -> Why:  # noqa: A002
        from clew.documents.pipelines.runs import Fact, Why
        from clew.pipelines.runner.unchanged_check import list_facts

        task = self.task(id)
        facts = list_facts(self._project.directory, self._project.settings, task.execution)
        return Why(
            id=task.id,
            state=task.state,
            why=task.why,
            reused_from=task.reused_from,
            execution=task.execution,
            key=task.key,
            parts=task.parts,
            pod=task.pod,
            node=task.node,
            image_digest=task.image_digest,
            placement=task.placement,
            facts=tuple(Fact(**fact) for fact in facts),
        )

    def diff(self, a: str, b: str) -> RunDiff:
        from clew.api.local.pipelines.runs import diff

        return diff(self.show(a), self.show(b))

    def repeat(
        self,
        id: str,  # noqa: A002
        *,
        say: Say = ignore_message,
        uid_of: Callable[[TaskId], Uid | None] = lambda _: None,
    ) -> RepeatedRun:
        """`uid_of`: the uid of the execution that repeats a task."""
        from clew.api.local.pipelines.runs import repeat

        return repeat(self._project, self.show(id), say=say, uid_of=uid_of)

    def _show_briefly(self, id: str) -> RunWithCounts:  # noqa: A002
        """With a small cache of its own: after a long run, memory is scarce."""
        from clew import db
        from clew.pipelines.runner.task_reuse import GRAPH_CACHE_MB
        from clew.pipelines.runs.run_list import get_run_with_counts
        from clew.prov.graph import Graph

        directory, address = self._project.directory, self._project.settings.graph
        with db.connect(directory.graph, address=address, cache=GRAPH_CACHE_MB) as connection:
            graph = Graph(connection, directory.uid)
            return get_run_with_counts(graph, id, alive=self._project.is_alive)

    def list(self) -> list[Run]:
        from clew.pipelines.runs.run_list import list_runs

        return list_runs(self._project.graph, alive=self._project.is_alive)

    def show(self, id: str) -> RunWithTasks:  # noqa: A002
        from clew.pipelines.runs.run_list import get_run

        return get_run(self._project.graph, id, alive=self._project.is_alive)

    def task(self, id: str) -> Task:  # noqa: A002
        from clew.prov.queries.pipelines.runs import get_task

        return get_task(self._project.graph, id, alive=self._project.is_alive)

    def logs(self, id: str, *, follow: bool = False) -> Iterator[bytes]:  # noqa: A002
        from clew.api.local.pipelines.logs import logs

        return logs(self._project, id, follow=follow)

    def read_log(self, id: str, offset: int = 0) -> LogPart:  # noqa: A002
        from clew.api.local.pipelines.logs import read_output

        return read_output(self._project, id, offset)
