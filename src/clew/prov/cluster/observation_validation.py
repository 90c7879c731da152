"""What an agent of a cluster may add to the graph.

Agents are trusted to describe Pods, requests and nodes, and nothing else: an agent that is taken
over must not alter what `clew exec` recorded. Unlike the record of a command, an observation may
add to an execution at any time, also when it has ended; the numbers of events decide what remains.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.documents.ids import Uid
from clew.errors import Rejected
from clew.prov.cluster.activity_uids import CLUSTER_KINDS, CONTAINER, POD
from clew.prov.cluster.facets import (
    FACET,
    FACET_TYPES,
    namespace_of_activity,
    namespace_of_name,
    read_facet,
)
from clew.prov.events import (
    Alias,
    AnyEvent,
    Content,
    Generated,
    Invalidated,
    Started,
    Used,
)
from clew.prov.import_scope import is_execution_uid
from clew.prov.row_keys import activity_key

if TYPE_CHECKING:
    from clew.prov.graph import Graph

_Place = tuple[str | None, str | None, str | None]
"""A kind, and the namespaces by the name and by the facet."""
_VERSIONED = (Used, Generated, Invalidated, Content)
_KINDS = (
    """SELECT x.id, s.kind, s.name, CASE WHEN s.kind <> 'pod' THEN s.facets END
    FROM execution x LEFT JOIN started s ON s.id = x.id WHERE x.id IN ({})""",
    "SELECT id, 'run', NULL, NULL FROM run WHERE id IN ({})",
)
_NAMES = ("pod://", "pvc://", "ip://", "service://")
_NAMED = ("pod://", "pvc://", "service://")
_HINT = "an agent describes Pods, requests and nodes only"


def check_observations(uid: Uid, events: Iterable[AnyEvent]) -> list[Started]:
    """Reject events that describe anything but the execution `uid` of a cluster.

    Returns those that say of which kind it is; without one, the graph has to know (`check_known`).
    """
    if not is_execution_uid(uid):
        raise Rejected(f"{uid[:80]!r} is not the uid of an execution", hint=_HINT)
    begun: list[Started] = []
    for event in events:
        if isinstance(event, Alias):
            _check_alias(event)
        activities = [] if isinstance(event, Alias | Content) else [event.activity]
        if isinstance(event, _VERSIONED):
            activities.append(event.version.maker)
        for activity in activities:
            if activity != uid and not activity.startswith(f"{uid}/"):
                raise Rejected(
                    f"the observations of {uid[:8]} describe {activity[:80]!r}", hint=_HINT
                )
        if isinstance(event, Started):
            own = event.activity == uid
            if event.kind not in (CLUSTER_KINDS if own else (CONTAINER,)):
                raise Rejected(f"{event.kind[:80]!r} is not of a cluster", hint=_HINT)
            if FACET in event.facets and event.kind in FACET_TYPES:
                _check_facet(event)
            if event.parent is not None and (own or event.parent != uid):
                raise Rejected(f"{event.activity[:80]!r} has another parent", hint=_HINT)
            begun += [event] if own else []
    return begun


def _check_alias(event: Alias) -> None:
    """Names of the cluster only: a file may be one of a laptop."""
    if not event.a.startswith(_NAMES) or not event.b.startswith(_NAMED):
        raise Rejected(f"{event.a[:80]!r} is no name of {event.b[:80]!r} in a cluster", hint=_HINT)


def _check_facet(event: Started) -> None:
    if read_facet(event.facets, FACET_TYPES[event.kind]) is None:
        raise Rejected(
            f"the facet {FACET} of {event.activity[:80]!r} is not that of a {event.kind}",
            hint="see docs/formats/events.md",
        )


def check_known(graph: Graph, begun: Mapping[Uid, Sequence[Started]]) -> None:
    """Reject an execution that the graph has as something else or in another namespace, or does not
    have unless the batch says that it has begun. The namespace decides who may read it."""
    keys = {activity_key(graph.project_uid, uid): uid for uid in begun}
    known: dict[Uid, str | None] = {}
    places: dict[Uid, set[_Place]] = {}
    for uid, starts in begun.items():
        places[uid] = {_find_place(one.kind, one.name, one.facets) for one in starts}
    for question in _KINDS:
        for key, kind, name, facets in graph.connection.rows_in(question, keys):
            known[keys[key]] = kind
            places[keys[key]].add(_find_place(kind, name, json.loads(facets or "{}")))
    for uid, starts in begun.items():
        if known[uid] not in CLUSTER_KINDS if uid in known else not starts:
            what = f"is a {known[uid]} here" if uid in known else f"did not begin, as a {POD} does"
            raise Rejected(f"the execution {uid[:8]} {what}", hint=_HINT)
        if len(places[uid]) > 1:
            what = "is of another kind, or in another namespace"
            raise Rejected(f"the execution {uid[:8]} {what}", hint=_HINT)


def _find_place(kind: str | None, name: str | None, facets: object) -> _Place:
    return kind, namespace_of_name(name), namespace_of_activity(kind, name, facets)
