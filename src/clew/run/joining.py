"""An execution inside an execution: the outer one sees everything already.

The command runs as a child of the outer execution, which records it; no second record is made.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew import db
from clew.errors import CannotExecute, ClewError, NoSuchCommand
from clew.folder import Folder
from clew.prov.graph import Graph
from clew.prov.questions.executions import execution
from clew.run import locks
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.run.executing import Outcome


def join(folder: Folder, settings: Settings, command: Sequence[str], outer: str) -> Outcome:
    """Run the command plainly, and name the execution that records it."""
    from clew.run.executing import Outcome

    connection = db.connect(folder.graph, address=settings.graph)
    try:
        graph = Graph(connection, folder.uid)
        try:
            found = execution(graph, outer, alive=lambda uid: locks.alive(folder, uid))
        except ClewError:  # the outer one records into another project
            found = {"id": None, "uid": outer}
    finally:
        connection.close()
    try:
        status = subprocess.run(list(command), check=False).returncode
    except FileNotFoundError as error:
        raise NoSuchCommand(f"no such command: {command[0]}") from error
    except OSError as error:
        raise CannotExecute(
            f"cannot execute {command[0]}: {os.strerror(error.errno or 0)}"
        ) from error
    return Outcome(
        execution=found, status=128 - status if status < 0 else status, joined=found["id"] or outer
    )
