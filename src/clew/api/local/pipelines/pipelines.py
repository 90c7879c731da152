"""Kubeflow pipelines of a project: run one, and ask how runs and their tasks went."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.api.project import Pipelines, Say, StrPath, ignore_message
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.pipelines.engine.scopes import Values
    from clew.pipelines.runner.live_logs import Said
    from clew.pipelines.runner.run_loop import Change
    from clew.pipelines.spec.ir import Pipeline
    from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch

_STATES = {
    "pending": "has not begun",
    "running": "is still running",
    "succeeded": "has succeeded",
    "failed": "has failed",
    "canceled": "was canceled",
}


def not_running_error(run: dict[str, Any]) -> UsageError:
    state = run["state"]
    return UsageError(
        f"{run['id']} is not running here: it {_STATES.get(state, state)}",
        hint="clew pipeline list",
    )


def check_resumable(run: dict[str, Any]) -> None:
    if run["state"] in ("pending", "running", "succeeded"):
        raise UsageError(
            f"cannot resume {run['id'] or 'the run'}: it {_STATES[run['state']]}",
            hint="start a new run with clew pipeline run",
        )


def _has_functions(file: Path) -> bool:
    """Whether the pipeline in a file probably has Python functions, which a worker forks."""
    try:
        return file.suffix == ".py" or b"kfp.dsl.executor_main" in file.read_bytes()
    except OSError:
        return False


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
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> dict[str, Any]:
        from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch, compile_pipeline
        from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool

        self.check_ready()
        path = Path(fspath(file))
        directory, settings = self._project.directory, self._project.settings
        workers = WorkerPool(directory, settings)
        with closing(InterpreterSearch(settings.cache)) as search, closing(workers):
            if _has_functions(path):
                workers.start(search.guess(), SDK_VARIABLES)  # it starts while the pipeline is read
            from clew.pipelines.spec import arguments, parser

            is_source = path.suffix == ".py"
            text = compile_pipeline(path, search.result()) if is_source else parser.read_file(path)
            pipeline = parser.parse_pipeline(text, str(path))
            inputs = arguments.bind_text(pipeline, parameters or {})
            return self.run_parsed(
                pipeline,
                inputs,
                file=path.resolve(),
                text=text,
                search=search,
                jobs=jobs,
                reuse=reuse,
                on_host=on_host,
                platform=platform,
                say=say,
                watch=watch,
                brief=brief,
                workers=workers,
            )

    def resume(
        self,
        id: str,  # noqa: A002
        *,
        jobs: int | None = None,
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> dict[str, Any]:
        return self.resume_run(id, jobs=jobs, say=say, watch=watch, brief=brief)

    def stop(self, id: str) -> None:  # noqa: A002
        """Cancel a run of this machine without waiting for its end."""
        from clew.pipelines.runner.recorder import stop

        stop(self._project.directory, self.show(id)["uid"])

    def resume_run(self, id: str, **more: Any) -> dict[str, Any]:  # noqa: A002
        from clew.pipelines.engine.scopes import Values
        from clew.pipelines.runner import event_journal, run_loop
        from clew.pipelines.runner.recorder import Earlier
        from clew.pipelines.runner.task_reuse import RUNS
        from clew.pipelines.spec import parser
        from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch
        from clew.prov.queries.pipelines.runs import find_run
        from clew.prov.queries.pipelines.tasks import (
            find_last_event_number,
            list_finished_tasks,
            load_run_facets,
        )
        from clew.run.recovery import recover

        self.check_ready()
        project = self._project
        before = self.show(id)
        check_resumable(before)
        recover(project.directory, project.settings)
        event_journal.fold(project.directory, project.settings, before["uid"])
        before = self.show(id)
        check_resumable(before)
        found = find_run(project.graph, before["id"])
        begun = load_run_facets(project.graph, found.key)
        file = project.directory.root / RUNS / before["id"] / run_loop.PIPELINE
        text = parser.read_file(file)
        with closing(InterpreterSearch(project.settings.cache)) as search:
            return self.run_parsed(
                parser.parse_pipeline(text, str(file)),
                Values(dict(before["inputs"])),
                file=file,
                text=text,
                search=search,
                earlier=Earlier(
                    found.uid,
                    find_last_event_number(project.graph, found.key),
                    begun["facts"],
                    list_finished_tasks(project.graph, found.key),
                ),
                **begun["options"],
                **more,
            )

    def cancel(self, id: str) -> dict[str, Any]:  # noqa: A002
        from clew.pipelines.runner.recorder import cancel

        found = self.show(id)
        if not cancel(self._project.directory, found["uid"]):
            raise not_running_error(found)
        return self.show(id)

    def why(self, id: str) -> dict[str, Any]:  # noqa: A002
        from clew.pipelines.runner.task_reuse import facts

        found = self.task(id)
        project = self._project
        words = ("id", "state", "why", "reused_from", "execution", "key", "parts")
        document = {name: found[name] for name in words}
        asked = facts(project.directory, project.settings, found["execution"])
        return {**document, "facts": asked}

    def diff(self, a: str, b: str) -> dict[str, Any]:
        from clew.api.local.pipelines.runs import diff

        return diff(self.show(a), self.show(b))

    def repeat(
        self,
        id: str,  # noqa: A002
        *,
        say: Say = ignore_message,
    ) -> dict[str, Any]:
        from clew.api.local.pipelines.runs import repeat

        return repeat(self._project, self.show(id), say=say)

    def check_ready(self) -> None:
        from clew.witness.syscalls import tracer_binary

        tracer_binary.require()
        if tracer_binary.outer_execution() is not None:
            raise UsageError(
                "a pipeline cannot be run within an execution", hint="clew pipeline run, by itself"
            )

    def run_parsed(
        self,
        pipeline: Pipeline,
        inputs: Values,
        *,
        file: Path,
        search: InterpreterSearch,
        on_host: bool = False,
        platform: StrPath | None = None,
        say: Callable[[str], None],
        brief: bool = False,
        **more: Any,
    ) -> dict[str, Any]:
        from clew.pipelines.runner import run_loop
        from clew.pipelines.tasks import attempt_factory, platform_file, volumes
        from clew.run.launch import inherited_env

        project = self._project
        named = Path(fspath(platform)).resolve() if platform else None
        mapped = platform_file.load_mapping(file, named, inherited_env.caller_environment())
        components = pipeline.components.values()
        volumes.check_volumes(mapped, components, project.root, on_host=on_host)
        for warning in (
            *pipeline.warnings,
            *attempt_factory.check_runnable(pipeline, on_host=on_host),
        ):
            say(warning)
        more["on_host"] = on_host
        directory, settings = volumes.hide_secrets(project.directory, project.settings, components)
        more |= {"file": file, "mapped": mapped, "say": say, "python": search.result()}
        made = run_loop.run(directory, settings, pipeline, inputs, **more)
        return self._counted(made) if brief else self.show(made)

    def _counted(self, id: str) -> dict[str, Any]:  # noqa: A002
        from clew import db
        from clew.pipelines.runner.task_reuse import CACHE
        from clew.prov.graph import Graph
        from clew.prov.queries.pipelines.runs import get_run_with_counts

        directory, address = self._project.directory, self._project.settings.graph
        with db.connect(directory.graph, address=address, cache=CACHE) as connection:
            return get_run_with_counts(
                Graph(connection, directory.uid), id, alive=self._project.is_alive
            )

    def list(self) -> list[dict[str, Any]]:
        from clew.prov.queries.pipelines.runs import list_runs

        return list_runs(self._project.graph, alive=self._project.is_alive)

    def show(self, id: str) -> dict[str, Any]:  # noqa: A002
        from clew.prov.queries.pipelines.runs import get_run

        return get_run(self._project.graph, id, alive=self._project.is_alive)

    def task(self, id: str) -> dict[str, Any]:  # noqa: A002
        from clew.prov.queries.pipelines.runs import get_task

        return get_task(self._project.graph, id, alive=self._project.is_alive)

    def logs(self, id: str, *, follow: bool = False) -> Iterator[bytes]:  # noqa: A002
        from clew.api.local.pipelines.logs import logs

        return logs(self._project, id, follow=follow)

    def said(self, id: str, offset: int = 0) -> Said:  # noqa: A002
        from clew.api.local.pipelines.logs import read_output

        return read_output(self._project, id, offset)
