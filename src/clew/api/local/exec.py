"""Run a command, record it in a local project, and deliver the record where there is a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.api.delivery import unsent
from clew.api.executions import Outcome
from clew.api.local.executions import as_execution
from clew.api.parameter_types import Progress
from clew.errors import UsageError
from clew.run.launch.execution_host import LocalHost
from clew.run.launch.pins import Pins
from clew.run.recorder import CommandRecorder
from clew.witness import tracer_binary

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState


def record_command(
    project: ProjectState,
    command: Sequence[str],
    *,
    name: str | None,
    content: bool,
    exclude: Iterable[str],
    pin: Iterable[str],
    progress: Progress,
) -> Outcome:
    if isinstance(command, str) or not command:
        raise UsageError(
            "a command is a list of words: the program, then its arguments",
            hint='project.exec(["sh", "-c", "…"]) runs a line of shell',
        )
    directory, settings, pins = project.directory, project.settings, Pins.chosen(pin)
    sends = settings.server is not None
    outer = tracer_binary.find_outer_execution()
    if outer is not None:  # it records this command already
        from clew.run.nested_exec import list_ignored, run_nested  # rarely needed

        ignored = list_ignored(name, content=content, exclude=tuple(exclude), pins=pins)
        result = run_nested(directory, settings, command, outer, ignored=ignored)
    else:
        tracer_binary.require()
        recorder = CommandRecorder(
            directory,
            settings,
            command,
            host=LocalHost(settings),
            name=name,
            store_content=content,
            exclude=tuple(exclude),
            pins=pins,
        )
        result = recorder.record(
            begun=lambda uid: unsent.mark_unsent(directory, uid) if sends else None
        )
    if result.warning is not None:
        from clew import log

        log.write_error(directory, result.warning)
    outcome = Outcome(
        execution=as_execution(project, result.execution),
        status=result.status,
        joined=result.joined,
        warning=result.warning,
    )
    if not sends or result.joined is not None:
        return outcome
    from clew.api.delivery.delivery import deliver_execution

    delivery = deliver_execution(project, result.execution.uid, progress)
    return replace(outcome, **delivery._asdict())
