"""Whether something was idle for too long, from when it was last used.

Use only moves forward. What cannot be asked is not idle: it is left alone until somebody can say.
A Pod that was just started counts as used, so that what was culled and started again is not culled
at once; and so does what is looked at for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from clew.kube.controller.model import STOPPED, is_stopped
from clew.kube.controller.options import Culling
from clew.kube.objects import (
    Object,
    annotations_of,
    condition_of,
    dig,
    is_leaving,
    moment,
    written,
)

LAST = "notebooks.kubeflow.org/last-activity"
CHECKED = "notebooks.kubeflow.org/last_activity_check_timestamp"
LAST_OTHER = "clew.dev/last-activity"
LIMIT = "clew.dev/idle-minutes"
"""On a resource: after how many idle minutes it is culled, or `never`."""


@dataclass(frozen=True)
class Activity:
    """What a server, or whoever saw its traffic, says of its use."""

    busy: bool = False
    last: datetime | None = None
    """None: it was not used since anybody looks."""


@dataclass(frozen=True)
class Verdict:
    cull: bool = False
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    """To be written in any case."""


def limit_of(resource: Object, culling: Culling) -> timedelta | None:
    """How long it may be idle; None: for ever. What is no number counts as not said."""
    said = annotations_of(resource).get(LIMIT, "").strip().lower()
    if said == "never":
        return None
    try:
        minutes = float(said)
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
    """`activity` is None when nobody can say."""
    notes = annotations_of(resource)
    last_note = LAST if resource["kind"] == "Notebook" else LAST_OTHER
    if is_stopped(resource) or pod is None or is_leaving(pod):
        kept = {note: None for note in (last_note, CHECKED) if note in notes}
        return Verdict(annotations=kept)
    if activity is None:
        return Verdict()
    before = moment(notes.get(last_note))
    known = [t for t in (before, _started(pod), activity.last) if t]
    last = now if activity.busy or before is None else min(max(known), now)
    moved = before is None or last.replace(microsecond=0) > before
    limit = limit_of(resource, culling)
    if limit is not None and now - last > limit:
        return Verdict(cull=True, annotations=_ended(resource, notes, last_note, now))
    if not moved:
        return Verdict()
    checked = {CHECKED: written(now)} if resource["kind"] == "Notebook" else {}
    return Verdict(annotations={last_note: written(last), **checked})


def _ended(
    resource: Object, notes: Mapping[str, str], last_note: str, now: datetime
) -> dict[str, str | None]:
    """A notebook is stopped, in one write with the end of its counting; others are deleted."""
    if resource["kind"] != "Notebook":
        return {}
    gone: dict[str, str | None] = {note: None for note in (last_note, CHECKED) if note in notes}
    return {STOPPED: written(now), **gone}


def _started(pod: Object) -> datetime | None:
    ready = condition_of(pod, "Ready")
    return moment(ready.get("lastTransitionTime")) or moment(dig(pod, "status", "startTime"))
