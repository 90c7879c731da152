"""The status of a resource from the state of its process, in the operator's words."""

import signal
from datetime import UTC, datetime

from clew.kube.controller.status_reasons import RUNNING, Reason, ready_condition
from clew.kube.objects import Json, Object, format_time
from clew.workloads.local.processes.launch_plan import viewer_path

__all__ = ["NOT_READY", "RUNNING", "STARTING", "explain_exit", "make_status"]

STARTING = Reason("Starting", "It is being started.")
NOT_READY = Reason("NotReady", "It runs, but does not answer yet. Its log may say why.")
_LINES = 8
"""Lines of its output in the explanation of a crash."""


def explain_exit(status: int, output: bytes) -> Reason:
    """Why a process ended, with the last lines that it printed."""
    if status < 0:
        try:
            how = f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            how = f"was ended by signal {-status}"
    else:
        how = f"ended with status {status}"
    lines = [line for line in output.decode(errors="replace").splitlines() if line.strip()]
    said = "\n".join(lines[-_LINES:])
    return Reason("Crashing", f"It {how}, and is started again." + (f"\n{said}" if said else ""))


def make_status(resource: Object, reason: Reason) -> Json:
    ready = reason is RUNNING or reason == RUNNING
    condition = ready_condition(
        resource, RUNNING if ready else reason, format_time(datetime.now(UTC))
    )
    condition["lastProbeTime"] = condition["lastTransitionTime"]
    if resource["kind"] == "Notebook":
        return {
            "conditions": [condition],
            "readyReplicas": int(ready),
            "containerState": container_state(reason, condition["lastTransitionTime"]),
        }
    if resource["kind"] == "Tensorboard":
        state = "Available" if ready else "Progressing"
        return {
            "conditions": [{**condition, "deploymentState": state}],
            "readyReplicas": int(ready),
        }
    return {"ready": ready, "url": viewer_path(resource), "conditions": [condition]}


def container_state(reason: Reason, since: str) -> Json:
    if reason == RUNNING:
        return {"running": {"startedAt": since}}
    if reason.name == "Stopped":
        return {}
    return {"waiting": {"reason": reason.name, "message": reason.text}}
