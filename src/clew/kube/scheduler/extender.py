"""Answer kube-scheduler's requests: which feasible nodes a Pod may have, and how good each is.

`filter` leaves out nodes beyond the Pod's limit, and all but the nearest hundred; `prioritize`
scores the others. For all other Pods, `filter` returns every node and `prioritize` no scores, so
kube-scheduler decides alone. The extender keeps the reasons of a decision until it sees the Pod on
a node, for the event that explains the placement. It also keeps the Pods that wait for a node
within their limit, so that kube-scheduler can be made to try them again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from clew.errors import UsageError
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState, Shares
from clew.kube.scheduler.wire_format import (
    Pod,
    encode_filter_result,
    encode_scores,
    parse_arguments,
)
from clew.placement.decision import decide, find_within_limit, keep_nearest, sum_up
from clew.placement.expected_latencies import ExpectedLatencies
from clew.placement.explanation import (
    Consideration,
    Explanation,
    explain,
    explain_limit,
    explain_wait,
)
from clew.placement.request import Request, parse_request

T = TypeVar("T")
_KEPT_PODS = 10_000
"""Pods that were placed and not seen on a node yet, and Pods that wait; the oldest are dropped."""


class Wait(NamedTuple):
    within: frozenset[str]
    """The nodes within the limit, of which none was feasible."""
    message: str


class Waiting(NamedTuple):
    """A Pod that has no feasible node within its limit."""

    pod: Pod
    request: Request
    wait: Wait


class Extender:
    """Use it from one event loop only."""

    def __init__(
        self,
        state: SchedulingState,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._clock = clock
        self._considered: OrderedDict[str, Consideration] = OrderedDict()
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._news: list[Waiting] = []

    def filter(self, body: bytes) -> bytes:
        """Raises UsageError if it is no request of kube-scheduler."""
        return self._answer("filter", self._filter, body)

    def prioritize(self, body: bytes) -> bytes:
        """Raises UsageError if it is no request of kube-scheduler."""
        return self._answer("prioritize", self._prioritize, body)

    def take_explanation(self, pod: Pod) -> Explanation | None:
        """Why a Pod is on its node; None if that was said before, or is not known."""
        considered = self._considered.pop(pod.metadata.uid, None)
        if considered is None or not pod.spec.node:
            return None
        if considered.chosen:
            self._metrics.placed(
                _known_locations(considered),
                as_chosen=pod.spec.node == considered.chosen,
                ms=considered.expected.mean_ms.get(pod.spec.node),
            )
        return explain(considered, pod.spec.node)

    def review_waiting(self) -> None:
        """Find the Pods that have more nodes within their limit, after latencies have changed."""
        found: dict[tuple[Shares, float | None], Wait] = {}
        for pod, request, before in list(self._waiting.values()):
            key = request.shares, request.max_ms
            if key not in found:
                found[key] = self._describe_wait(request)
            if found[key].within - before.within:
                self._wait(Waiting(pod, request, found[key]))

    def take_waiting(self) -> list[Waiting]:
        """The Pods that began to wait since the last call, or have more nodes within the limit."""
        news, self._news = self._news, []
        return news

    def end_waiting(self, uid: str) -> bool:
        """Whether the Pod waited."""
        return self._waiting.pop(uid, None) is not None

    def forget(self, uid: str) -> None:
        self._considered.pop(uid, None)
        self._waiting.pop(uid, None)

    def _answer(
        self, verb: str, function: Callable[[Pod, list[str]], tuple[bytes, bool]], body: bytes
    ) -> bytes:
        with self._metrics.seconds.labels(verb).time():
            try:
                arguments = parse_arguments(body)
            except UsageError:
                self._metrics.requests.labels(verb, "refused").inc()
                raise
            answer, decided = function(arguments.pod, arguments.nodes)
            self._metrics.requests.labels(verb, "decided" if decided else "neutral").inc()
            return answer

    def _filter(self, pod: Pod, nodes: list[str]) -> tuple[bytes, bool]:
        if (request := _request_of(pod)) is None:
            return encode_filter_result(nodes, (), ""), False
        expected = self._state.expect(request.shares)
        if not _knows_any(expected, nodes):
            self._consider(pod, Consideration(request, expected, "", "", len(nodes)))
            return encode_filter_result(nodes, (), ""), False
        beyond: list[str] = []
        within = nodes
        reason = ""
        if request.max_ms is not None:
            within, beyond = find_within_limit(expected, request.max_ms, nodes)
            reason = explain_limit(request, expected, beyond)
            if not within:
                self._metrics.limited.inc()
                self._wait(Waiting(pod, request, self._describe_wait(request)))
        totals = self._sum_up(pod, request, expected, within)
        kept = keep_nearest(totals, within)
        if len(kept) == 1:  # kube-scheduler does not ask for scores then
            self._choose(pod, request, expected, kept, totals)
        return encode_filter_result(kept, beyond, reason), True

    def _prioritize(self, pod: Pod, nodes: list[str]) -> tuple[bytes, bool]:
        if (request := _request_of(pod)) is None:
            return b"[]", False
        expected = self._state.expect(request.shares)
        if not _knows_any(expected, nodes):
            self._consider(pod, Consideration(request, expected, "", "", len(nodes)))
            return b"[]", False
        totals = self._sum_up(pod, request, expected, nodes)
        scores = self._choose(pod, request, expected, nodes, totals)
        return encode_scores(scores), True

    def _sum_up(
        self, pod: Pod, request: Request, expected: ExpectedLatencies, nodes: Sequence[str]
    ) -> dict[str, float]:
        occupancy = self._state.occupancy
        occupancy.withdraw(pod.metadata.uid)  # of an earlier attempt
        replicas = occupancy.replicas(pod.owner)
        return sum_up(request, expected, nodes, replicas=replicas, costs=self._state.costs)

    def _choose(
        self,
        pod: Pod,
        request: Request,
        expected: ExpectedLatencies,
        nodes: Sequence[str],
        totals: dict[str, float],
    ) -> dict[str, int]:
        if not totals:
            return {}
        occupancy, uid, now = self._state.occupancy, pod.metadata.uid, self._clock()
        occupancy.expire(now)
        replicas = occupancy.replicas(pod.owner)
        decision = decide(uid, nodes, totals, replicas=replicas, pods_on=occupancy.pods_on)
        occupancy.assume(uid, decision.chosen, pod.owner, now=now)
        considered = Consideration(
            request, expected, decision.chosen, decision.next_best, len(nodes)
        )
        self._consider(pod, considered)
        self._metrics.decided(_known_locations(considered))
        return decision.scores

    def _consider(self, pod: Pod, considered: Consideration) -> None:
        _keep(self._considered, pod.metadata.uid, considered)

    def _describe_wait(self, request: Request) -> Wait:
        expected = self._state.expect(request.shares)
        within, beyond = find_within_limit(expected, request.max_ms or 0.0, expected.farthest_ms)
        return Wait(frozenset(within), explain_wait(request, expected, within, beyond))

    def _wait(self, waiting: Waiting) -> None:
        uid = waiting.pod.metadata.uid
        known = self._waiting.get(uid)
        _keep(self._waiting, uid, waiting)
        if known is None or waiting.wait.within - known.wait.within:
            self._news.append(waiting)


def _keep(kept: OrderedDict[str, T], uid: str, value: T) -> None:
    kept[uid] = value
    kept.move_to_end(uid)
    if len(kept) > _KEPT_PODS:
        kept.popitem(last=False)


def _request_of(pod: Pod) -> Request | None:
    return parse_request(pod.metadata.labels or {}, pod.metadata.annotations or {})


def _knows_any(expected: ExpectedLatencies, nodes: Sequence[str]) -> bool:
    return any(name in expected.mean_ms for name in nodes)


def _known_locations(considered: Consideration) -> list[str]:
    unknown = considered.expected.unknown
    return [name for name, _ in considered.request.shares if name not in unknown]
