"""Perform a run that was requested from a server: start it, or resume it."""

import os
import time
from collections.abc import Callable
from contextlib import closing

from clew.documents.document import to_nanoseconds
from clew.documents.ids import Uid
from clew.documents.pipelines.runs import Run
from clew.errors import Busy, ClewError, NotFound
from clew.pipelines.run_directory import PIPELINE
from clew.pipelines.runner import pending_events
from clew.pipelines.runner.run_types import ClusterOptions, PipelineRun, RunOptions
from clew.pipelines.runs import pipeline_specs
from clew.pipelines.runs.perform import check_ready, resume_record, run_pipeline
from clew.pipelines.runs.project_interface import OpenProject
from clew.pipelines.runs.run_queue import RunRequest
from clew.pipelines.spec import arguments, parser
from clew.pipelines.tasks import kfp_interpreter
from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch
from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool
from clew.prov.queries.pipelines.runs import get_run_summary
from clew.run.recovery import recover

_WAIT_SECONDS = 30.0
"""Seconds to wait until the process that performed a run before has ended."""


class StandbyWorkers:
    """A worker started ahead of time, so that the next run need not wait for it."""

    def __init__(self, project: OpenProject) -> None:
        self._project = project
        self._workers: WorkerPool | None = None

    def prepare(self) -> None:
        """Start a worker; if that fails, the run will report the error."""
        if self._workers is not None:
            return
        settings = self._project.settings
        workers = WorkerPool(self._project.directory, settings)
        try:
            workers.acquire(kfp_interpreter.find_interpreter(settings.cache), SDK_VARIABLES)
        except ClewError:
            return
        self._workers = workers

    def pop(self) -> WorkerPool | None:
        workers, self._workers = self._workers, None
        return workers


def perform_request(
    project: OpenProject,
    request: RunRequest,
    standby: StandbyWorkers,
    *,
    on_host: bool,
    cluster: ClusterOptions | None,
    say: Callable[[str], None],
) -> tuple[str, str | None]:
    """Perform a run to its end and return its state and error.

    A run that was started before is resumed, unless it has succeeded or ended after the request's
    `finished`: then only its end was not reported. A canceled run is resumed too, since its server
    was shut down, unless a user has canceled it.
    """
    limit = request.config.get("options", {}).get("jobs")
    jobs = min(limit, len(os.sched_getaffinity(0))) if limit and cluster is None else limit
    record = _await_release(project, request.id)
    try:
        if record is None or record.started is None:
            options = RunOptions(
                jobs=jobs,
                reuse=request.config.get("options", {}).get("reuse", True),
                on_host=on_host,
                cluster=cluster,
                say=say,
            )
            _start(project, request, standby, options)
        elif not _is_over(record, request):
            resume_record(project, request.id, workers=standby.pop(), jobs=jobs, say=say)
    except ClewError:
        record = _find_record(project, request.id)
        if record is None or not _is_over(record, request):
            raise
        # the run has ended in spite of the error
    record = _find_record(project, request.id)
    assert record is not None, "the run was started"
    return record.state, record.error


def _await_release(project: OpenProject, uid: Uid) -> Run | None:
    """The record of a run, once no process on this machine performs it and the events of a killed
    process are recovered."""
    spool = project.directory.spool / uid
    until = time.monotonic() + _WAIT_SECONDS
    while project.is_alive(uid) or spool.exists():
        if time.monotonic() > until:
            raise Busy(f"the run {uid} is still running on this machine", hint="clew pipeline list")
        recover(project.directory, project.settings)
        time.sleep(0.02)
    pending_events.fold_pending(project.directory, project.settings, uid)
    return _find_record(project, uid)


def _find_record(project: OpenProject, uid: Uid) -> Run | None:
    try:
        return get_run_summary(project.graph, uid, alive=project.is_alive)
    except NotFound:
        return None


def _is_over(record: Run, request: RunRequest) -> bool:
    if record.state == "succeeded":
        return True
    if (record.state == "canceled" and not request.stop) or not record.ended:
        return False
    return to_nanoseconds(record.ended) > (request.finished or 0)


def _start(
    project: OpenProject,
    request: RunRequest,
    standby: StandbyWorkers,
    options: RunOptions,
) -> None:
    check_ready()
    text = pipeline_specs.text_of(project.graph, request.spec)
    pipeline = parser.parse_pipeline(text)
    facts = {"pipeline_job_name": request.name}
    if request.scheduled is not None:
        due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(request.scheduled // 10**9))
        facts["pipeline_job_schedule_time_utc"] = due
    run = PipelineRun(
        pipeline=pipeline,
        inputs=arguments.bind_values(pipeline, request.config.get("parameters") or {}),
        text=text,
        file=project.root / PIPELINE,
        uid=request.id,
        facts=facts,
    )
    with closing(InterpreterSearch(project.settings.cache)) as search:
        run_pipeline(project, run, options, search=search, workers=standby.pop())
