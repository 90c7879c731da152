"""Where Pods of our kind are: those that are bound, and those that were just given a node.

kube-scheduler asks about the next Pod before the watch reports where the last one went. So a Pod is
assumed to be on the node that was chosen for it, until it is seen bound or deleted, or some time
has passed: the scheduler may have decided otherwise.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

ASSUMED_SECONDS = 30.0
_NONE: Mapping[str, int] = {}


class _Place(NamedTuple):
    node: str
    owner: str


class Occupancy:
    """Pods by uid. `owner` identifies what a Pod is a replica of; empty for a single Pod."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._deadlines: OrderedDict[str, float] = OrderedDict()
        """Of assumed Pods, the earliest first."""
        self._pods: Counter[str] = Counter()
        self._replicas: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def bind(self, uid: str, node: str, owner: str) -> None:
        """A Pod was seen on a node."""
        self.remove(uid)
        self._add(uid, _Place(node, owner))

    def assume(self, uid: str, node: str, owner: str, *, now: float) -> None:
        """A Pod will probably be on a node."""
        self.remove(uid)
        self._add(uid, _Place(node, owner))
        self._deadlines[uid] = now + ASSUMED_SECONDS

    def withdraw(self, uid: str) -> None:
        """Forget what was assumed of a Pod; where it was seen stays."""
        if uid in self._deadlines:
            self.remove(uid)

    def remove(self, uid: str) -> None:
        """A Pod is gone, or nowhere yet."""
        self._deadlines.pop(uid, None)
        place = self._places.pop(uid, None)
        if place is None:
            return
        _decrease(self._pods, place.node)
        if place.owner:
            replicas = self._replicas[place.owner]
            _decrease(replicas, place.node)
            if not replicas:
                del self._replicas[place.owner]

    def expire(self, now: float) -> None:
        """Forget assumptions that have not come true in time."""
        while self._deadlines:
            uid, deadline = next(iter(self._deadlines.items()))
            if deadline > now:
                return
            self.remove(uid)

    def pods_on(self, node: str) -> int:
        return self._pods[node]

    def replicas(self, owner: str) -> Mapping[str, int]:
        """How many replicas are on each node. The caller only reads it."""
        return self._replicas.get(owner, _NONE)

    def bound_uids(self) -> set[str]:
        return self._places.keys() - self._deadlines.keys()

    def assumed_count(self) -> int:
        return len(self._deadlines)

    def _add(self, uid: str, place: _Place) -> None:
        self._places[uid] = place
        self._pods[place.node] += 1
        if place.owner:
            self._replicas[place.owner][place.node] += 1


def _decrease(counts: Counter[str], node: str) -> None:
    counts[node] -= 1
    if not counts[node]:
        del counts[node]
