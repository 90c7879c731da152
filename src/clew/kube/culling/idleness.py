"""Whether a resource was idle for too long, from the time of its last use.

That time only moves forward. A server that does not respond is not culled. The start of a Pod
counts as use, so a server that was culled and started again is not culled at once; so does the
first check.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from clew.kube.controller.model import STOPPED, is_stopped
from clew.kube.controller.options import Culling
from clew.kube.objects import (
    Object,
    annotations_of,
    condition_of,
    dig,
    format_time,
    is_deleting,
    parse_time,
)

LAST_ACTIVITY = "notebooks.kubeflow.org/last-activity"
LAST_CHECK = "notebooks.kubeflow.org/last_activity_check_timestamp"
OTHER_LAST_ACTIVITY = "clew.dev/last-activity"
IDLE_MINUTES = "clew.dev/idle-minutes"
"""On a resource: after how many idle minutes it is culled, or `never`."""


@dataclass(frozen=True)
class Activity:
    """The use of a server, from itself or from its traffic."""

    busy: bool = False
    last: datetime | None = None
    """None: no use was seen."""


@dataclass(frozen=True)
class Verdict:
    cull: bool = False
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """To write, whether it is culled or not."""


def limit_of(resource: Object, culling: Culling) -> timedelta | None:
    """How long it may be idle; None: for ever. An invalid number is ignored."""
    text = annotations_of(resource).get(IDLE_MINUTES, "").strip().lower()
    if text == "never":
        return None
    try:
        minutes = float(text)
        return timedelta(minutes=minutes) if minutes > 0 else culling.idle
    except (ValueError, OverflowError):
        return culling.idle


def decide(
    resource: Object,
    pod: Object | None,
    activity: Activity | None,
    now: datetime,
    culling: Culling,
) -> Verdict:
    """`activity` is None if it is unknown."""
    notes = annotations_of(resource)
    last_note = LAST_ACTIVITY if resource["kind"] == "Notebook" else OTHER_LAST_ACTIVITY
    if is_stopped(resource) or pod is None or is_deleting(pod):
        kept = {note: None for note in (last_note, LAST_CHECK) if note in notes}
        return Verdict(annotations=kept)
    if activity is None:
        return Verdict()
    before = parse_time(notes.get(last_note))
    known = [t for t in (before, _start_time(pod), activity.last) if t]
    last = now if activity.busy or before is None else min(max(known), now)
    moved = before is None or last.replace(microsecond=0) > before
    limit = limit_of(resource, culling)
    if limit is not None and now - last > limit:
        return Verdict(cull=True, annotations=_stop_annotations(resource, notes, last_note, now))
    if not moved:
        return Verdict()
    checked = {LAST_CHECK: format_time(now)} if resource["kind"] == "Notebook" else {}
    return Verdict(annotations={last_note: format_time(last), **checked})


def _stop_annotations(
    resource: Object, notes: Mapping[str, str], last_note: str, now: datetime
) -> dict[str, str | None]:
    """Stop a notebook and remove its activity, in one write; other kinds are deleted instead."""
    if resource["kind"] != "Notebook":
        return {}
    gone: dict[str, str | None] = {note: None for note in (last_note, LAST_CHECK) if note in notes}
    return {STOPPED: format_time(now), **gone}


def _start_time(pod: Object) -> datetime | None:
    ready = condition_of(pod, "Ready")
    return parse_time(ready.get("lastTransitionTime")) or parse_time(
        dig(pod, "status", "startTime")
    )


def parse_jupyter_activity(kernels: list[Any], terminals: Any, status: Any) -> Activity:
    """A kernel that is not idle makes it busy; the last activity is the latest of all times."""
    found = [k for k in kernels if isinstance(k, Mapping)]
    others = [t for t in terminals if isinstance(t, Mapping)] if isinstance(terminals, list) else []
    server = [status] if isinstance(status, Mapping) else []
    times = [
        parse_time(str(each.get("last_activity") or "")) for each in [*found, *others, *server]
    ]
    return Activity(
        busy=any(k.get("execution_state") != "idle" for k in found),
        last=max((time for time in times if time), default=None),
    )
