"""Which Pods answered at an address or for a Service at a time.

An address belongs to one Pod or Service after the other. A Service leads to the Pods that its
EndpointSlices listed at the time; which of them answered is not known, so all of them count.
"""

from collections.abc import Iterable
from typing import NamedTuple

from clew.documents.ids import Locator
from clew.prov.cluster.activity_uids import LEFT, POD
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.row_keys import location_key

ADDRESS, SERVICE = "ip://", "service://"
_LAG = 10 * 10**9
"""How long a node may lead connections to a Pod that has left: its proxy follows a moment later."""

_HOLDERS = f"""
SELECT a.a, a.at, s.id, s.kind, l.locator,
  coalesce((SELECT min(e.at) FROM ended e WHERE e.activity = s.id), {FOREVER})
FROM alias a JOIN started s ON s.id = a.execution JOIN location l ON l.id = a.b
WHERE a.a IN ({{}}) AND s.kind IN ('pod', 'controller')
"""  # noqa: S608
_LEFT = f"""
SELECT k.activity, l.locator, k.at FROM looked k JOIN location l ON l.id = k.location
WHERE k.activity IN ({{}}) AND k.kind = '{LEFT}'
"""  # noqa: S608


class _Holder(NamedTuple):
    """A Pod, or a Service (`pod` is 0), and when a place led to it."""

    since: int
    until: int
    pod: int
    service: Locator


class Endpoints:
    """Each place is asked for once."""

    def __init__(self, graph: Graph, *, lag: int = _LAG) -> None:
        """`lag`: how long a Pod that left a Service counts."""
        self._graph = graph
        self._lag = lag
        self._holders: dict[Locator, list[_Holder]] = {}

    def load(self, places: Iterable[Locator]) -> None:
        """Load several places at once, with the Services that they led to."""
        loaded = self._load(places)
        self._load({one.service for one in loaded if not one.pod})

    def _load(self, places: Iterable[Locator]) -> list[_Holder]:
        project = self._graph.project_uid
        missing = {
            location_key(project, place): place for place in places if place not in self._holders
        }
        rows = self._graph.connection.rows_in(_HOLDERS, missing)
        left = self._load_left({row[2] for row in rows if row[3] == POD})
        found: dict[Locator, list[_Holder]] = {place: [] for place in missing.values()}
        for key, since, holder, kind, target, end in rows:
            place = missing[key]
            if kind == POD:
                times = [at for at in left.get((holder, place), ()) if at >= since]
                until = min([end, *(at + self._lag for at in times)])
                found[place].append(_Holder(since, until, holder, place))
            elif target.startswith(SERVICE):
                found[place].append(_Holder(since, end, 0, Locator(target)))
        for holders in found.values():
            holders.sort()
        self._holders |= found
        return [one for holders in found.values() for one in holders]

    def _load_left(self, pods: Iterable[int]) -> dict[tuple[int, Locator], list[int]]:
        left: dict[tuple[int, Locator], list[int]] = {}
        for pod, service, at in self._graph.connection.rows_in(_LEFT, pods):
            left.setdefault((pod, service), []).append(at)
        return left

    def pods_at(self, place: Locator, at: int) -> set[int]:
        """The rows of the Pods that may have answered at a place."""
        if not place.startswith(SERVICE):
            holder = self._holder_at(place, at)
            if holder is None or holder.pod:
                return set() if holder is None else {holder.pod}
            place = holder.service
        self.load([place])
        return {one.pod for one in self._holders[place] if one.since <= at <= one.until}

    def service_at(self, place: Locator, at: int) -> Locator | None:
        """The Service at a place."""
        if place.startswith(SERVICE):
            return place
        holder = self._holder_at(place, at)
        return holder.service if holder is not None and not holder.pod else None

    def _holder_at(self, address: Locator, at: int) -> _Holder | None:
        """The last one that got the address by then, if it still had it."""
        self.load([address])
        before = [one for one in self._holders[address] if one.since <= at]
        return before[-1] if before and at <= before[-1].until else None
