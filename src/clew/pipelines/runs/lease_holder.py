"""Keep the claim on a run while it is performed."""

import threading
import time
from collections.abc import Callable

from clew import db
from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.pipelines.runner.cancellation import request_cancel
from clew.pipelines.runs import run_queue
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.settings import Settings

LEASE_SECONDS = 15.0
"""How long a lease lasts without renewal."""
_RENEW_SECONDS = 1.0
"""Between two renewals of the lease."""
_WAIT_SECONDS = 0.1
"""Between two checks whether the run has finished."""


def lease_end() -> int:
    """The end of a lease that is taken or renewed now, in ns."""
    return time.time_ns() + int(LEASE_SECONDS * 1e9)


def hold_lease(
    directory: ProjectDirectory,
    settings: Settings,
    run: Uid,
    holder: str,
    *,
    finished: threading.Event,
    wait: Callable[[float], object],
    lost: Callable[[], None],
) -> None:
    """Renew the lease until the run has `finished`, and stop the run if a user cancels it.

    Call it in a thread of its own. `wait` waits for some seconds; `lost` is called when another
    worker has claimed the run.
    """
    graph: Graph | None = None
    next_renewal = time.monotonic() + _RENEW_SECONDS
    while not finished.is_set():
        wait(_WAIT_SECONDS)
        if time.monotonic() < next_renewal:
            continue
        canceled: bool | None = False
        try:
            if graph is None:
                connection = db.connect(directory.graph, address=settings.graph)
                graph = Graph(connection, directory.uid)
            canceled = run_queue.renew_lease(graph, run, holder, lease=lease_end())
        except ClewError:  # without the database no other worker can claim the run
            if graph is not None:
                graph.connection.close()
                graph = None
        next_renewal = time.monotonic() + _RENEW_SECONDS
        if finished.is_set():
            break
        if canceled is None:
            lost()
            break
        if canceled:
            request_cancel(directory, run)
    if graph is not None:
        graph.connection.close()
