"""Run pipelines, and resume and cancel runs, on this machine.

Imports are late: a worker process starts while the modules that read the pipeline are loaded.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from clew.documents.ids import Uid
from clew.errors import Busy, ClewError, UsageError
from clew.pipelines.runner.run_types import PipelineRun, ResumedRun, RunOptions, read_options
from clew.pipelines.runs.project_interface import OpenProject
from clew.pipelines.runs.run_states import ACTIVE_STATES, check_resumable, not_running_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.pipelines.runner.run_types import Change
    from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch
    from clew.pipelines.tasks.worker_pool import WorkerPool

_POLL_SECONDS = 0.02
_RESULT_SECONDS = 10.0
"""How long the worker of a canceled run may take to store its result."""


def check_ready() -> None:
    """Refuse to run a pipeline where tasks cannot be recorded."""
    from clew.witness import tracer_binary

    tracer_binary.require()
    if tracer_binary.find_outer_execution() is not None:
        raise UsageError(
            "a pipeline cannot be run within an execution", hint="clew pipeline run, by itself"
        )


def run_file(
    project: OpenProject, file: Path, parameters: Mapping[str, str], options: RunOptions
) -> str:
    """Run a compiled pipeline, or the one that a Python file defines, and return the run's id."""
    from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch, compile_pipeline
    from clew.pipelines.tasks.worker_pool import SDK_VARIABLES, WorkerPool

    check_ready()
    workers = WorkerPool(project.directory, project.settings)
    with closing(InterpreterSearch(project.settings.cache)) as search, closing(workers):
        if options.cluster is None and _has_functions(file):
            workers.start(search.guess(), SDK_VARIABLES)  # it starts while the pipeline is read
        from clew.pipelines.spec import arguments, parser

        is_source = file.suffix == ".py"
        text = compile_pipeline(file, search.result()) if is_source else parser.read_file(file)
        pipeline = parser.parse_pipeline(text, str(file))
        inputs = arguments.bind_text(pipeline, parameters)
        run = PipelineRun(pipeline=pipeline, inputs=inputs, text=text, file=file.resolve())
        return run_pipeline(project, run, options, search=search, workers=workers)


def _has_functions(file: Path) -> bool:
    """Whether the pipeline in a file probably has Python functions, which a worker forks."""
    try:
        return file.suffix == ".py" or b"kfp.dsl.executor_main" in file.read_bytes()
    except OSError:
        return False


def run_pipeline(
    project: OpenProject,
    run: PipelineRun,
    options: RunOptions,
    *,
    search: InterpreterSearch,
    workers: WorkerPool | None = None,
) -> str:
    """Check that a pipeline can run here, run it, and return the run's id. `workers`: processes
    started ahead of time."""
    from clew.pipelines.runner import run_loop

    directory, settings = project.directory, project.settings
    if options.cluster is not None:
        from clew.pipelines.pods.pod_backend import prepare_pods

        make = prepare_pods(run, options, options.cluster)
        return run_loop.perform(directory, settings, run, options, make)
    return _run_here(project, run, options, search=search, workers=workers)


def _run_here(
    project: OpenProject,
    run: PipelineRun,
    options: RunOptions,
    *,
    search: InterpreterSearch,
    workers: WorkerPool | None,
) -> str:
    from clew.pipelines.runner import run_loop
    from clew.pipelines.runner.local_backend import LocalBackend
    from clew.pipelines.tasks import attempt_factory, platform_mapping, volumes
    from clew.pipelines.tasks.worker_pool import WorkerPool
    from clew.run.launch import inherited_env

    pipeline = run.pipeline
    platform = Path(options.platform).resolve() if options.platform else None
    mapped = platform_mapping.load_mapping(
        run.file, platform, inherited_env.restore_caller_environment()
    )
    options = replace(options, platform=os.fspath(mapped.file) if mapped.file.exists() else None)
    components = pipeline.components.values()
    volumes.check_volumes(mapped, components, project.root, on_host=options.on_host)
    warnings = attempt_factory.check_runnable(pipeline, on_host=options.on_host)
    for warning in (*pipeline.warnings, *warnings):
        options.say(warning)
    directory, settings = volumes.hide_secrets(project.directory, project.settings, components)
    workers = workers or WorkerPool(directory, settings)
    workers.set_redaction(directory, settings)
    make = partial(
        LocalBackend,
        run=run,
        options=options,
        python=search.result(),
        mapped=mapped,
        workers=workers,
    )
    return run_loop.perform(directory, settings, run, options, make)


def resume_run(
    project: OpenProject,
    text: str,
    *,
    jobs: int | None,
    say: Callable[[str], None],
    watch: Callable[[Change], None],
) -> str:
    """Resume a failed or canceled run here, and return its id.

    If the run was requested from a server, this process claims the request and reports the result
    to it.
    """
    from clew.pipelines.runs.run_list import find_request, get_run_summary

    check_ready()
    run = get_run_summary(project.graph, text, alive=project.is_alive)
    check_resumable(run)
    if run.id is None:
        raise UsageError(f"cannot resume {run.uid}: it never started", hint="clew pipeline run")
    if find_request(project.graph, run.uid) is None:
        return resume_record(project, run.uid, jobs=jobs, say=say, watch=watch)
    with _claim(project, run.uid):
        return resume_record(project, run.uid, jobs=jobs, say=say, watch=watch)


@contextmanager
def _claim(project: OpenProject, uid: Uid) -> Iterator[None]:
    """Hold the request of a finished run while it is resumed, and store the result in it."""
    from clew.pipelines.runs import run_queue
    from clew.pipelines.runs.lease_holder import hold_lease, lease_end
    from clew.prov.queries.pipelines.runs import get_run_summary

    holder, finished = os.urandom(16).hex(), threading.Event()
    if not run_queue.claim_finished(project.graph, uid, holder, lease=lease_end()):
        raise Busy(f"the run {uid} was resumed by another process", hint="clew pipeline list")
    thread = threading.Thread(
        target=hold_lease,
        args=(project.directory, project.settings, uid, holder),
        kwargs={"finished": finished, "wait": finished.wait, "lost": lambda: None},
        daemon=True,
    )
    thread.start()
    error: str | None = None
    try:
        yield
    except ClewError as failure:
        error = failure.message
        raise
    finally:
        finished.set()
        thread.join()
        graph = project.graph
        record = get_run_summary(graph, uid, alive=lambda _: False)
        if record.state != "succeeded":
            error = error or record.error
        run_queue.finish_request(graph, uid, holder, state=record.state, error=error)


def resume_record(
    project: OpenProject,
    uid: Uid,
    *,
    jobs: int | None,
    say: Callable[[str], None],
    watch: Callable[[Change], None] = lambda _: None,
    workers: WorkerPool | None = None,
) -> str:
    """Resume a run whose record is not successful, whatever its request says."""
    from clew.pipelines.run_directory import PIPELINE, RUNS
    from clew.pipelines.runner import pending_events
    from clew.pipelines.spec import parser
    from clew.pipelines.spec.values import Values
    from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch
    from clew.prov.queries.pipelines import finished_tasks
    from clew.prov.queries.pipelines.runs import find_run, get_run_summary
    from clew.run.recovery import recover

    check_ready()
    recover(project.directory, project.settings)
    pending_events.fold_pending(project.directory, project.settings, uid)
    graph = project.graph
    record = get_run_summary(graph, uid, alive=project.is_alive)
    check_resumable(record)
    found = find_run(graph, uid)
    key = found.key
    facets = finished_tasks.load_run_facets(graph, key)
    file = project.root / RUNS / found.id / PIPELINE
    text = parser.read_file(file)
    run = PipelineRun(
        pipeline=parser.parse_pipeline(text, str(file)),
        inputs=Values(dict(record.inputs)),
        text=text,
        file=file,
        facts=facets["facts"],
        resumed=ResumedRun(
            uid=uid,
            last_event=finished_tasks.find_last_event_number(graph, key),
            finished=finished_tasks.list_finished_tasks(graph, key),
            seconds=record.seconds or finished_tasks.find_recorded_seconds(graph, key),
            attempts=finished_tasks.count_attempts(graph, key),
        ),
    )
    options = replace(read_options(facets["options"]), jobs=jobs, say=say, watch=watch)
    with closing(InterpreterSearch(project.settings.cache)) as search:
        return run_pipeline(project, run, options, search=search, workers=workers)


def cancel_run(project: OpenProject, uid: Uid) -> None:
    """Cancel a run without waiting for its end; one that has ended stays as it is."""
    from clew.pipelines.runner.cancellation import request_cancel
    from clew.pipelines.runs import run_queue
    from clew.pipelines.runs.run_list import find_request

    if find_request(project.graph, uid) is not None:
        run_queue.cancel_request(project.graph, uid)
    request_cancel(project.directory, uid)


def cancel_and_wait(project: OpenProject, text: str) -> None:
    """Cancel a run, and wait until it has ended on this machine and its result is stored."""
    from clew.pipelines.runs.run_list import get_run_summary, is_finished

    run = get_run_summary(project.graph, text, alive=project.is_alive)
    if run.state not in ACTIVE_STATES:
        raise not_running_error(run)
    cancel_run(project, run.uid)
    while project.is_alive(run.uid):
        time.sleep(_POLL_SECONDS)
    until = time.monotonic() + _RESULT_SECONDS
    while time.monotonic() < until:
        if is_finished(project.graph, run.uid, alive=project.is_alive):
            return
        time.sleep(_POLL_SECONDS)
