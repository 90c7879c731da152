"""Kubernetes events about resources: which one is about what, and the latest warning."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from clew.documents.workloads.workload import WorkloadEvent
from clew.kube.objects import Json, Object, dig, parse_time

_LONG_AGO = datetime.fromtimestamp(0, UTC)


def group_events(events: Iterable[Json], kind: str) -> dict[str, list[Json]]:
    """The events about resources of this kind, by their names: one request for a whole list."""
    found: dict[str, list[Json]] = {}
    for event in events:
        if dig(event, "involvedObject", "kind") == kind:
            found.setdefault(str(dig(event, "involvedObject", "name")), []).append(event)
    return found


def events_about(events: Iterable[Json], kind: str, name: str) -> list[Json]:
    return group_events(events, kind).get(name, [])


def event_time(event: Object) -> datetime:
    """The time of its last occurrence."""
    texts = (event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    found = (parse_time(text) for text in texts if isinstance(text, str))
    return next(filter(None, found), _LONG_AGO)


def newest_first(events: Iterable[Json]) -> list[Json]:
    return sorted(events, key=event_time, reverse=True)


def latest_warning(events: Iterable[Object], *, since: datetime | None) -> Object | None:
    warnings = [
        event
        for event in events
        if event.get("type") == "Warning" and (since is None or event_time(event) >= since)
    ]
    return max(warnings, key=event_time, default=None)


def describe_events(events: Sequence[Json]) -> tuple[WorkloadEvent, ...]:
    return tuple(
        WorkloadEvent(
            type=str(event.get("type") or "Normal"),
            reason=str(event.get("reason") or ""),
            message=str(event.get("message") or ""),
            at=event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"),
            count=int(event.get("count") or 1),
        )
        for event in newest_first(events)
    )
