"""The conditions of a training job's status, and how they change.

As upstream, the condition that changed last is last, Running and Restarting replace each other, and
nothing follows Failed. The condition Ready, which says why a replica does not run, is ours; it is
first, where no program of upstream looks.
"""

from collections.abc import Sequence
from datetime import datetime

from clew.kube.objects import Json, Object, format_time

CREATED, RUNNING, RESTARTING = "Created", "Running", "Restarting"
SUSPENDED, SUCCEEDED, FAILED = "Suspended", "Succeeded", "Failed"
READY = "Ready"


def find_condition(conditions: Sequence[Object], type_: str) -> Object:
    """Empty if there is none."""
    return next((each for each in conditions if each.get("type") == type_), {})


def is_true(conditions: Sequence[Object], type_: str) -> bool:
    return bool(find_condition(conditions, type_).get("status") == "True")


def is_finished(conditions: Sequence[Object]) -> bool:
    return is_true(conditions, SUCCEEDED) or is_true(conditions, FAILED)


def set_condition(
    conditions: Sequence[Object],
    type_: str,
    *,
    reason: str,
    message: str,
    now: datetime,
    status: str = "True",
) -> list[Json]:
    """The conditions after a change; the same if the condition has that status and reason."""
    known = find_condition(conditions, type_)
    if is_true(conditions, FAILED) or (known.get("status"), known.get("reason")) == (
        status,
        reason,
    ):
        return [dict(each) for each in conditions]
    time = format_time(now)
    same = known.get("status") == status
    made = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": time,
        "lastTransitionTime": known.get("lastTransitionTime", time) if same else time,
    }
    replaced = {RUNNING: RESTARTING, RESTARTING: RUNNING}.get(type_)
    kept = [dict(c) for c in conditions if c.get("type") not in (type_, replaced)]
    if status == "True" and type_ in (SUCCEEDED, FAILED, SUSPENDED):
        changed = {"status": "False", "lastUpdateTime": time, "lastTransitionTime": time}
        if type_ == SUSPENDED:
            changed |= {"reason": reason, "message": message}
        kept = [
            {**each, **changed} if is_true([each], RUNNING) else each
            for each in kept
            if each.get("type") != RESTARTING
        ]
    return [*kept, made]
