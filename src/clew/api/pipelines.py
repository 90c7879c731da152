"""Kubeflow pipelines of a project: run one, and ask how runs and their tasks went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.errors import NotFound, UsageError

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.pipelines.running import Change


class Pipelines:
    """`project.pipelines`; every document is that of the command of the same name."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(
        self,
        file: str | PathLike[str],
        parameters: Mapping[str, str] | None = None,
        *,
        jobs: int | None = None,
        reuse: bool = True,
        say: Callable[[str], None] = lambda _: None,
        watch: Callable[[Change], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Run a compiled pipeline (`.yaml`), or the one that a Python file defines, to its end.

        `parameters` are texts, read by the types that the pipeline declares. At most `jobs` tasks
        run at once; as many as there are cores, if it is not given. `reuse`: what an earlier
        run did need not be done again, as far as every fact it relied on still holds. `say` is
        told what is different here from a cluster, `watch` of every change of a task. A run that
        fails is no error: see `state`.
        """
        from clew.pipelines import arguments, pythons, reading, running
        from clew.witness import native

        native.require()
        if native.outer_execution() is not None:
            raise UsageError(
                "a pipeline cannot be run within an execution", hint="clew pipeline run, by itself"
            )
        path = Path(fspath(file))
        python = pythons.interpreter()
        if path.suffix == ".py":
            pipeline = reading.parse(pythons.compiled(path, python), str(path))
        else:
            pipeline = reading.read(path)
        inputs = arguments.bind(pipeline, parameters or {})
        for remark in pipeline.remarks:
            say(remark)
        project = self._project
        made = running.run(
            project._folder,
            project._settings,
            pipeline,
            inputs,
            file=path.resolve(),
            python=python,
            jobs=jobs,
            reuse=reuse,
            say=say,
            watch=watch,
        )
        return self.show(made)

    def list(self) -> list[dict[str, Any]]:
        """All runs, oldest first, without their tasks."""
        from clew.prov.questions.runs import runs

        return runs(self._project._graph, alive=self._project._alive)

    def show(self, id: str) -> dict[str, Any]:  # noqa: A002
        """One run with its tasks, by id (`r1`) or uid."""
        from clew.prov.questions.runs import run

        return run(self._project._graph, id, alive=self._project._alive)

    def task(self, id: str) -> dict[str, Any]:  # noqa: A002
        """One task, by id (`r1/train`)."""
        from clew.prov.questions.runs import task

        return task(self._project._graph, id, alive=self._project._alive)

    def logs(self, id: str) -> Iterator[bytes]:  # noqa: A002
        """What a task printed in its last attempt, piece by piece."""
        found = self.task(id)
        if not found["execution"]:
            why = found["why"] or found["state"]
            raise NotFound(f"{found['id']} has not run to an end: {why}", hint="clew pipeline show")
        try:
            yield from self._project.chunks(f"{found['execution']}:stdout")
        except NotFound as error:
            if error.code != "not-found":
                raise  # it printed something, of which only the digest was kept
