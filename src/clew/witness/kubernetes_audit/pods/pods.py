"""A Pod as the API server answers with it, as events.

Every answer has the whole Pod, so each gives all that is known at that time: the same facts have
the same numbers, and an answer that was missed does not matter if a later one comes.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import POD
from clew.prov.cluster.facets import PodFacet, write_facet
from clew.prov.cluster.locators import address_locator, pod_locator, pod_name_locator
from clew.prov.events import Alias, AnyEvent, Ended, Gap, Started
from clew.prov.facets import MAX_VALUES
from clew.witness.kubernetes_audit.audit_event import MAX_NAME
from clew.witness.kubernetes_audit.kubernetes_time import end_of_second
from clew.witness.kubernetes_audit.object_types import ContainerStatus, Pod
from clew.witness.kubernetes_audit.pods.containers import describe_containers
from clew.witness.kubernetes_audit.pods.masked_pod import MaskedPod

_FINAL_PHASES = {"Succeeded", "Failed"}
_MAX_VALUES = MAX_VALUES // 2
"""Values of a spec; the graph takes twice as many in all facets of an event."""
_HAS_NETWORK = "PodReadyToStartContainers"


def describe_pod(
    uid: Uid, pod: Pod, *, at: int, agent: str | None, removed: bool, patterns: tuple[str, ...]
) -> Iterator[AnyEvent]:
    """`at`: when the API server answered with it. `agent`: who created it, if that is known.
    `removed`: it is gone after this answer. `patterns`: the user's, for names of secrets."""
    about = pod.metadata
    masked = MaskedPod(pod.spec, patterns)
    created = end_of_second(about.creation_timestamp) if about.creation_timestamp else at
    own = Started(
        execution=uid,
        n=0,
        at=created,
        activity=uid,
        kind=POD,
        agent=agent,
        name=f"{about.namespace}/{about.name}",
        node=str(pod.spec.get("nodeName", ""))[:MAX_NAME] or None,
        facets=write_facet(
            PodFacet(
                namespace=about.namespace,
                name=about.name,
                labels=about.kept_labels,
                owner=about.owner,
                service_account=str(pod.spec.get("serviceAccountName", "")),
                spec=masked.spec if masked.values <= _MAX_VALUES else {},
            )
        ),
    )
    yield own
    if masked.values > _MAX_VALUES:
        what, why = "the spec of the Pod", f"it has more than {_MAX_VALUES} values"
        yield Gap(execution=uid, n=0, at=created, activity=uid, what=what, why=why)
    here = pod_locator(uid)
    name = pod_name_locator(about.namespace, about.name)
    yield Alias(execution=uid, n=0, at=created, a=name, b=here)
    for address, since in _addresses(pod):
        if (locator := address_locator(address)) is not None:
            yield Alias(execution=uid, n=0, at=since, a=locator, b=here)
    yield from describe_containers(uid, pod, masked)
    if pod.status.phase in _FINAL_PHASES or removed:
        yield _describe_end(uid, pod, at=at)


def _addresses(pod: Pod) -> Iterator[tuple[str, int]]:
    """The addresses of the Pod's own network, and since when. A Pod that has ended keeps them in
    its status, while another Pod may already have them."""
    if pod.spec.get("hostNetwork") is True:
        return
    for condition in pod.status.conditions or ():
        since = condition.last_transition_time
        if condition.type == _HAS_NETWORK and condition.status == "True" and since is not None:
            for one in pod.status.pod_ips or ():
                yield one.ip, end_of_second(since)


def _describe_end(uid: Uid, pod: Pod, *, at: int) -> Ended:
    """The Pod ended with its last container; with the first exit status that is not 0. One that
    succeeded has 0: Kubernetes ends its sidecars, whatever status they leave."""
    listed = (pod.status.init_container_statuses, pod.status.container_statuses)
    statuses: list[ContainerStatus] = [one for found in listed for one in found or ()]
    ends = [one.state.terminated for one in statuses if one.state.terminated is not None]
    times = [end_of_second(one.finished_at) for one in ends if one.finished_at is not None]
    complete = bool(times) and len(ends) == len(statuses)
    codes = [one.exit_code for one in ends if pod.status.phase != "Succeeded"]
    return Ended(
        execution=uid,
        n=0,
        at=max(times) if complete else at,
        activity=uid,
        status=next((code for code in codes if code), 0) if complete else None,
    )
