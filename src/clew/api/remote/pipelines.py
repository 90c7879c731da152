"""The pipelines of a server. The client requests a run and follows it; the run does not need it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import quote

from clew.api.parameter_types import Say, StrPath, ignore_message
from clew.api.pipelines import Pipelines
from clew.api.remote import downloads
from clew.api.remote.client import Client, task_path
from clew.api.remote.messages import RepeatCommand
from clew.documents.comparisons.differences import RunDiff
from clew.documents.executions.repeats import RepeatedRun
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import (
    LogPart,
    Run,
    Runs,
    RunWithCounts,
    RunWithTasks,
    Task,
    TaskState,
    Why,
)
from clew.errors import ClewError, NotFound, UsageError
from clew.pipelines.runs.run_states import (
    ACTIVE_STATES,
    FINAL_STATES,
    check_resumable,
    not_running_error,
)

if TYPE_CHECKING:
    from clew.pipelines.engine.run_state import Node
    from clew.pipelines.runner.run_types import Change, ClusterOptions

_POLL_SECONDS = 0.3
"""Seconds between queries for the state of a run or the output of a task."""

Watch = Callable[["Change"], None]


class RemotePipelines(Pipelines):
    """See `clew.api.project.Pipelines`."""

    def __init__(self, client: Client) -> None:
        self._client = client

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
        watch: Watch = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        """Run it on the server and wait for its end. If interrupted, the run goes on there."""
        from clew.pipelines.spec import arguments, parser
        from clew.pipelines.tasks import attempt_factory, kfp_interpreter
        from clew.pipelines.tasks.platform_mapping import FILE_NAME

        path = Path(fspath(file))
        if cluster:
            raise UsageError(
                "--on cannot be used with a server: it knows where tasks run",
                hint="start the server with --on-cluster and CLEW_ARTIFACTS",
            )
        if platform:
            raise UsageError(
                "--platform cannot be used with a server: it names secrets and volumes of this"
                " machine",
                hint=f"write it on the server, into {self._client.root / FILE_NAME}",
            )
        compiled = path.suffix == ".py"
        text = (
            kfp_interpreter.compile_pipeline(
                path, kfp_interpreter.find_interpreter(self._client.settings.cache)
            )
            if compiled
            else parser.read_file(path)
        )
        pipeline = parser.parse_pipeline(text, str(path))
        inputs = arguments.bind_text(pipeline, parameters or {})
        warnings = [
            *pipeline.warnings,
            *(attempt_factory.check_runnable(pipeline, on_host=True) if on_host else ()),
        ]
        if path.with_name(FILE_NAME).exists() and path.resolve().parent != self._client.root:
            warnings.append(f"{FILE_NAME} applies to this machine only: the server uses its own")
        asked = {
            "spec": text,
            "parameters": dict(inputs.parameters),
            "jobs": jobs,
            "reuse": reuse,
            "on_host": on_host,
        }
        made = self._client.post("runs", RunWithTasks, asked)
        for warning in warnings:
            say(warning)
        return self._follow(made.uid, {}, say, watch, brief)

    def resume(
        self,
        id: str,  # noqa: A002
        *,
        jobs: int | None = None,
        say: Say = ignore_message,
        watch: Watch = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        before = self.show(id)
        check_resumable(before)
        asked = {"jobs": jobs}
        self._client.post(f"runs/{before.uid}/resume", RunWithTasks, asked)
        known = {task.name: task.state for task in before.tasks}
        return self._follow(before.uid, known, say, watch, brief)

    def cancel(self, id: str) -> RunWithTasks:  # noqa: A002
        found = self.show(id)
        if found.state not in ACTIVE_STATES:
            raise not_running_error(found)
        self._client.post(f"runs/{found.uid}/cancel", RunWithTasks)
        while found.state in ACTIVE_STATES:
            time.sleep(_POLL_SECONDS)
            found = self.show(found.uid)
        return found

    def list(self) -> list[Run]:
        runs: list[Run] = []
        query = {"limit": "1000"}
        while True:
            page = self._client.get("runs", Runs, **query)
            runs += page.runs
            if page.next is None:
                return runs[::-1]
            query["after"] = page.next

    def show(self, id: str) -> RunWithTasks:  # noqa: A002
        if not id or not id.isascii():
            raise NotFound(f"no pipeline run {id}", hint="clew pipeline list")
        return self._client.get(f"runs/{quote(id, safe='')}", RunWithTasks)

    def task(self, id: str) -> Task:  # noqa: A002
        return self._client.get(task_path(id), Task)

    def why(self, id: str) -> Why:  # noqa: A002
        return self._client.get(f"{task_path(id)}/why", Why)

    def diff(self, a: str, b: str) -> RunDiff:
        return self._client.get("diff", RunDiff, a=a, b=b)

    def repeat(self, id: str, *, say: Say = ignore_message) -> RepeatedRun:  # noqa: A002
        command = RepeatCommand(id=id, secrets=self._client.given_secrets)
        return downloads.run_command(self._client, command, RepeatedRun, say)

    def read_log(self, id: str, offset: int = 0) -> LogPart:  # noqa: A002
        return self._client.get(f"{task_path(id)}/log/part", LogPart, offset=str(offset))

    def logs(self, id: str, *, follow: bool = False) -> Iterator[bytes]:  # noqa: A002
        name = self.task(id).id
        offset, attempt, printed = 0, "", False
        while True:
            now = self.read_log(name, offset)
            if now.attempt and now.attempt != attempt:
                again, offset, attempt = bool(offset), 0, now.attempt
                if again:
                    continue
            if now.data:
                yield now.data
                offset, printed = offset + len(now.data), True
            elif now.complete or not follow:
                break
            else:
                time.sleep(_POLL_SECONDS)
        task = self.task(name)
        if not printed and not task.execution and task.state not in ACTIVE_STATES:
            why = task.why or task.error or task.state
            raise NotFound(f"{name} has printed nothing: {why}", hint="clew pipeline show")

    # -- following

    def _follow(
        self, uid: Uid, known: dict[str, TaskState], say: Say, watch: Watch, brief: bool
    ) -> RunWithTasks | RunWithCounts:
        """Report every change of a task until the run ends; `known`: the states of tasks so far."""
        try:
            while (found := self.show(uid)).state not in FINAL_STATES:
                _report_changes(found, known, watch)
                time.sleep(_POLL_SECONDS)
        except KeyboardInterrupt:
            name = self.show(uid).id or uid
            url = self._client.server.url
            say(f"{name} continues at {url}; clew pipeline cancel {name} stops it")
            raise
        _report_changes(found, known, watch)
        if found.id is None:
            raise ClewError(found.error or f"it was {found.state}", hint="clew pipeline list")
        if not brief:
            return found
        fields = {name: getattr(found, name) for name in Run.__struct_fields__}
        counts: Counter[str] = Counter(task.state for task in found.tasks)
        return RunWithCounts(**fields, counts=counts)


class _TaskState(NamedTuple):
    """The part of a `Node` that progress displays use."""

    path: str
    state: str
    error: str | None


def _report_changes(run: RunWithTasks, known: dict[str, TaskState], watch: Watch) -> None:
    from clew.pipelines.runner.run_types import Change

    for task in run.tasks:
        state = task.state
        if known.get(task.name) == state or state == "pending":
            continue
        known[task.name] = state
        over = state != "running"
        watch(
            Change(
                cast("Node", _TaskState(task.name, state, task.error)),
                execution=task.execution,
                seconds=task.seconds if over and task.execution else None,
                why=task.why if state != "succeeded" else None,
                reused=task.reused_from,
            )
        )
