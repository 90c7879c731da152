"""Perform the pipeline runs that a server has queued: start them, or resume them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clew.api.local.pipelines.pipelines import LocalPipelines
from clew.errors import Busy, ClewError, NotFound

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.pipelines.tasks.worker_pool import WorkerPool


_WAIT_SECONDS = 30.0
"""Seconds to wait until the process that executed a run before has ended."""


class StandbyWorkers:
    """A worker started ahead of time, so that the next run need not wait for it."""

    def __init__(self, project: ProjectState) -> None:
        self._project = project
        self._workers: WorkerPool | None = None

    def prepare(self) -> None:
        """Start a worker; if that fails, the run will report the error."""
        if self._workers is not None:
            return
        from clew.pipelines.tasks import kfp_interpreter
        from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool

        workers = WorkerPool(self._project.directory, self._project.settings)
        try:
            workers.acquire(
                kfp_interpreter.find_interpreter(self._project.settings.cache), SDK_VARIABLES
            )
        except ClewError:
            return
        self._workers = workers

    def take(self) -> WorkerPool | None:
        found, self._workers = self._workers, None
        return found


def perform_run(
    project: ProjectState,
    waiting: StandbyWorkers,
    *,
    uid: str,
    name: str,
    text: str,
    values: Mapping[str, Any],
    scheduled: int | None,
    since: int | None,
    stopped: bool,
    on_host: bool,
    say: Callable[[str], None],
    jobs: int | None = None,
    reuse: bool = True,
) -> tuple[str, str | None]:
    """Execute a run to its end and return its state and error.

    A run that was started before is resumed, unless it has succeeded or ended after `since`: then
    only its end was not reported. A canceled run is resumed too, since its server was shut down,
    unless a user has `stopped` it. `scheduled` is the time it was due. `jobs` limits the tasks
    that run at the same time, at most the number of cores.
    """
    jobs = min(jobs, len(os.sched_getaffinity(0))) if jobs else None
    known = _await_release(project, uid)
    try:
        if known is None or known["started"] is None:
            how = {"on_host": on_host, "jobs": jobs, "reuse": reuse, "say": say}
            found = _begin(project, waiting, uid, name, text, values, scheduled, how)
        elif _is_over(known, since, stopped):
            found = known
        else:
            found = LocalPipelines(project).resume_run(
                uid, workers=waiting.take(), jobs=jobs, say=say
            )
    except ClewError:
        late = _known(project, uid)
        if late is None or not _is_over(late, since, stopped):
            raise
        found = late  # the run has ended in spite of the error
    return found["state"], found["error"]


def _await_release(project: ProjectState, uid: str) -> dict[str, Any] | None:
    """The record of a run, once no process on this machine executes it and the events of a killed
    one are recovered."""
    from clew.pipelines.runner import event_journal
    from clew.run.recovery import recover

    left = project.directory.spool / uid
    until = time.monotonic() + _WAIT_SECONDS
    while project.is_alive(uid) or left.exists():
        if time.monotonic() > until:
            raise Busy(f"the run {uid} is still running on this machine", hint="clew pipeline list")
        recover(project.directory, project.settings)
        time.sleep(0.02)
    event_journal.fold(project.directory, project.settings, uid)
    return _known(project, uid)


def _is_over(known: dict[str, Any], since: int | None, stopped: bool) -> bool:
    if known["state"] == "succeeded":
        return True
    if known["state"] == "canceled" and not stopped:
        return False
    return bool(known["ended"]) and _ns(known["ended"]) > (since or 0)


def _known(project: ProjectState, uid: str) -> dict[str, Any] | None:
    try:
        return LocalPipelines(project).show(uid)
    except NotFound:
        return None


def _begin(
    project: ProjectState,
    waiting: StandbyWorkers,
    uid: str,
    name: str,
    text: str,
    values: Mapping[str, Any],
    scheduled: int | None,
    how: Mapping[str, Any],
) -> dict[str, Any]:
    from clew.pipelines.spec import arguments, parser
    from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch

    pipelines = LocalPipelines(project)
    pipelines.check_ready()
    pipeline = parser.parse_pipeline(text)
    facts = {"pipeline_job_name": name}
    if scheduled is not None:
        due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(scheduled // 10**9))
        facts["pipeline_job_schedule_time_utc"] = due
    with closing(InterpreterSearch(project.settings.cache)) as search:
        return pipelines.run_parsed(
            pipeline,
            arguments.bind_values(pipeline, values),
            file=project.root / "pipeline.yaml",  # the platform file is looked for beside it
            text=text,
            search=search,
            uid=uid,
            facts=facts,
            workers=waiting.take(),
            **how,
        )


def _ns(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp).timestamp() * 1e9)
