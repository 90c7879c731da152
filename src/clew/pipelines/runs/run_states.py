"""The states of a run, and which operations they allow.

`queued` is the state of a request only: in documents such a run is `pending`.
"""

from clew.documents.pipelines.runs import Run
from clew.errors import UsageError

FINAL_STATES = ("succeeded", "failed", "canceled")
ACTIVE_STATES = ("pending", "running")
_SENTENCES = {
    "pending": "has not begun",
    "running": "is still running",
    "succeeded": "has succeeded",
    "failed": "has failed",
    "canceled": "was canceled",
}


def not_running_error(run: Run) -> UsageError:
    return UsageError(
        f"{run.id or run.uid} is not running here: it {_SENTENCES[run.state]}",
        hint="clew pipeline list",
    )


def check_resumable(run: Run) -> None:
    if run.state not in ("failed", "canceled"):
        raise UsageError(
            f"cannot resume {run.id or 'the run'}: it {_SENTENCES[run.state]}",
            hint="start a new run with clew pipeline run",
        )
