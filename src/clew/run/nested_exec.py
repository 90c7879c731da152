"""`clew exec` inside another execution: the outer one records the command, so no second record
is made."""

import os
import subprocess
from collections.abc import Sequence

from clew import db
from clew.documents.executions.execution_list import Execution
from clew.documents.ids import Uid
from clew.errors import CannotExecute, ClewError, UsageError
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.queries.executions import get_execution
from clew.run import spool_directories
from clew.run.launch.pins import UNPINNED, Pins
from clew.run.record_errors import no_such_command_error
from clew.run.recording_result import RecordingResult, unfolded_execution
from clew.settings import Settings


def list_ignored(
    name: str | None, *, content: bool, exclude: Sequence[str], pins: Pins
) -> list[str]:
    """The options that were given but have no effect inside another execution."""
    given = {
        "--name": name is not None,
        "--no-content": not content,
        "--exclude": bool(exclude),
        "--pin": pins != UNPINNED,
    }
    return [option for option, is_given in given.items() if is_given]


def run_nested(
    directory: ProjectDirectory,
    settings: Settings,
    command: Sequence[str],
    outer: Uid,
    *,
    ignored: Sequence[str],
) -> RecordingResult:
    """Run the command without a tracer, and return the outer execution. The warning names the
    `ignored` options."""
    try:
        status = subprocess.run(list(command), check=False).returncode
    except FileNotFoundError as error:
        raise no_such_command_error(command[0]) from error
    except OSError as error:
        raise CannotExecute(
            f"cannot execute {command[0]}: {os.strerror(error.errno or 0)}",
            hint=f"chmod +x {command[0]}",
        ) from error
    found = _outer_execution(directory, settings, command, outer)
    warning = None
    if ignored:
        options, have = ", ".join(ignored), "has" if len(ignored) == 1 else "have"
        warning = UsageError(
            f"{options} {have} no effect inside another execution",
            hint=f"give {options} to the outer clew exec",
        )
    return RecordingResult(
        execution=found,
        status=128 - status if status < 0 else status,
        joined=found.id or outer,
        warning=warning,
    )


def _outer_execution(
    directory: ProjectDirectory, settings: Settings, command: Sequence[str], outer: Uid
) -> Execution:
    try:
        with db.connect(directory.graph, address=settings.graph) as connection:
            graph = Graph(connection, directory.uid)
            return get_execution(
                graph, outer, alive=lambda uid: spool_directories.is_alive(directory, uid)
            )
    except ClewError:  # it is in another project, or the graph cannot be read
        return unfolded_execution(outer, command, state="running")
