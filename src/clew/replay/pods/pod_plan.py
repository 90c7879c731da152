"""Plan which Pods to run again, and in which order, to reproduce a target.

The plan is the smallest ordered set of Pods whose outputs the target needs and the store does not
have. It is decided by file and, for comparison, by volume: a witness that sees no files makes every
earlier writer of a volume an ancestor. Each Pod that runs, and each that does not, has a reason.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from clew.documents.ids import Locator, Uid
from clew.errors import NotFound
from clew.garbage_collection import collect_seldom
from clew.prov.cluster.ancestry_types import AncestorPod, Ancestry, FoundVersion
from clew.replay.pods.pod_graph import TARGET, PodGraph, all_of, is_restored
from clew.replay.repeat.recreate_plan import CannotRecreate, plan_recreation


@dataclass(frozen=True)
class PodChoice:
    """A Pod that runs again, or not, and the reason."""

    pod: AncestorPod
    why: str


@dataclass(frozen=True)
class PodPlan:
    """`run`: in order. `pods_by_file`, `pods_by_volume`: how many Pods a plan has by each."""

    run: tuple[PodChoice, ...]
    skipped: tuple[PodChoice, ...]
    pods_by_file: int
    pods_by_volume: int


@collect_seldom()
def plan_pods(ancestry: Ancestry) -> PodPlan:
    """Find the fewest Pods to run; NotFound if the target needs what is neither stored nor made by
    a recorded Pod."""
    graph = PodGraph(ancestry)
    chosen = _choose(graph)
    reasons = _Reasons(graph, chosen)
    uids = {pod.uid for pod in chosen}
    return PodPlan(
        tuple(PodChoice(pod, reasons.explain_use(pod)) for pod in chosen),
        tuple(
            PodChoice(pod, reasons.explain_skip(pod)) for pod in graph.pods if pod.uid not in uids
        ),
        pods_by_file=len(chosen),
        pods_by_volume=_count_by_volume(ancestry),
    )


def _choose(graph: PodGraph) -> list[AncestorPod]:
    """Add the companions of what was chosen until no more are needed."""
    also: set[Uid] = set()
    while True:
        graph.add_target(also)
        try:
            found = plan_recreation(TARGET, graph.find_producers)
        except CannotRecreate as error:
            raise _explain_missing(graph, error.missing) from error
        chosen = [graph.pods[one.number] for one in found if one.number < len(graph.pods)]
        needed = {uid for pod in chosen for uid in graph.list_companions(pod)}
        needed -= {pod.uid for pod in chosen}
        if not needed:
            return chosen
        also |= needed


def _explain_missing(graph: PodGraph, missing: Iterable[str]) -> NotFound:
    """Which version is missing, and who needs it."""
    lacking = set(missing)
    readers: list[tuple[AncestorPod | None, tuple[FoundVersion, ...]]] = [
        (None, graph.wanted),
        *((pod, pod.inputs) for pod in graph.pods),
    ]
    hint = "the node agent's settings say which files it stores: docs/how-to/reproduce-on-a-cluster"
    for reader, versions in readers:
        for found in versions:
            if lacking.intersection(graph.list_needs(found, reader)):
                who = TARGET if reader is None else f"the Pod {reader.name}"
                what = "which is not stored, and no recorded Pod made it"
                return NotFound(f"{who} needs {found.locator}, {what}", hint=hint)
    return NotFound("the Pods that made it need the outputs of each other", hint=hint)


class _Reasons:
    """Why each Pod runs or does not run."""

    def __init__(self, graph: PodGraph, chosen: list[AncestorPod]) -> None:
        self._graph = graph
        self._users: dict[str, tuple[str, Locator]] = {}
        self._taken: dict[Uid, list[Locator]] = {}
        self._replaced: set[Uid] = set()
        self._lost: dict[Uid, tuple[str, Locator]] = {}
        self._peers = {
            one.uid: pod.name for pod in chosen for peer in pod.peers for one in peer.pods
        }
        self._volumes = {volume for pod in chosen for volume in pod.volumes}
        readers: list[tuple[AncestorPod | None, tuple[FoundVersion, ...]]] = [
            (None, graph.wanted),
            *((pod, pod.inputs) for pod in chosen),
        ]
        for reader, versions in readers:
            name = TARGET if reader is None else reader.name
            for found in versions:
                for key in graph.list_needs(found, reader):
                    self._users.setdefault(key, (name, found.locator))
                for maker in found.makers:
                    if graph.is_stored(found):
                        self._taken.setdefault(maker, []).append(found.locator)
                    elif not is_restored(found):
                        self._lost.setdefault(maker, (name, found.locator))
                    else:
                        self._replaced.add(maker)

    def explain_use(self, pod: AncestorPod) -> str:
        """Which output is needed, and for what."""
        for key, locator in self._graph.list_made_keys(pod).items():
            if key in self._users:
                return f"{self._users[key][0]} needs {locator}, which is not stored"
        if all_of(pod.uid) in self._users:
            user, locator = self._users[all_of(pod.uid)]
            return f"{user} needs what it may have left at {locator}"
        return "files are not told apart on a volume that it wrote to"

    def explain_skip(self, pod: AncestorPod) -> str:
        """Why none of its outputs has to be made."""
        if taken := sorted(set(self._taken.get(pod.uid, ()))):
            more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
            return f"{taken[0]}{more}: taken from the store"
        if pod.uid in self._replaced:
            return "another Pod that runs makes the same bytes"
        if pod.uid in self._lost:
            reader, locator = self._lost[pod.uid]
            return f"{reader} found {locator}, which a reproduction does not restore"
        if pod.uid in self._peers:
            return f"{self._peers[pod.uid]} talked to it: its answers are not recorded"
        if self._volumes.intersection(pod.volumes):
            return "it shares a volume with a Pod that runs, but no file that is needed"
        return "only Pods that do not run read its outputs"


def _count_by_volume(ancestry: Ancestry) -> int:
    """How many Pods the plan has if files are not told apart, so that none can be stored.

    Of each volume, every writer before some time is needed: remember until which it was followed.
    """
    pods = {pod.uid: pod for pod in ancestry.pods}
    writers = {
        one.locator: sorted((at, uid) for uid, at in one.writers) for one in ancestry.volumes
    }
    followed: dict[Locator, int] = {}
    seen: set[Uid] = set()
    waiting: list[Uid] = []

    def follow(volumes: Iterable[Locator], until: int | None) -> None:
        for volume in volumes:
            line = writers.get(volume, [])
            end = len(line) if until is None else bisect_left(line, (until, ""))
            begin = followed.get(volume, 0)
            waiting.extend(uid for _, uid in line[begin:end])
            followed[volume] = max(begin, end)

    follow(ancestry.wanted_volumes, None)
    waiting += [uid for found in ancestry.wanted for uid in found.makers]
    while waiting:
        uid = waiting.pop()
        if uid in seen or uid not in pods:
            continue
        seen.add(uid)
        pod = pods[uid]
        follow(pod.volumes, pod.ended)
        objects = (one for one in pod.inputs if one.locator.startswith("s3://"))
        waiting += [maker for found in objects for maker in found.makers]
    return len(seen)
