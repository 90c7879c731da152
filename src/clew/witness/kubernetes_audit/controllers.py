"""What creates Pods (Deployments, Jobs, Notebooks …), and the addresses of Services."""

from __future__ import annotations

from collections.abc import Iterator

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import CONTROLLER
from clew.prov.cluster.facets import ControllerFacet, write_facet
from clew.prov.cluster.locators import address_locator, service_locator
from clew.prov.events import Alias, AnyEvent, Ended, Started
from clew.witness.kubernetes_audit.audit_event import MAX_NAME
from clew.witness.kubernetes_audit.kubernetes_time import end_of_second
from clew.witness.kubernetes_audit.object_types import AnyObject, Job, Metadata, Service

_REVISION = "deployment.kubernetes.io/revision"
_JOB_ENDS = {"Complete": 0, "Succeeded": 0, "Failed": 1}
"""The conditions of a Job, and of a training job of Kubeflow."""


def describe_controller(
    uid: Uid, found: AnyObject, *, at: int, agent: str | None, removed: bool
) -> Iterator[AnyEvent]:
    """`agent`: who created it, if that is known. `removed`: it is gone after this answer."""
    about = found.metadata
    yield Started(
        execution=uid,
        n=0,
        at=_created(about, at),
        activity=uid,
        kind=CONTROLLER,
        agent=agent,
        name=f"{about.namespace}/{about.name}",
        facets=write_facet(
            ControllerFacet(
                namespace=about.namespace,
                name=about.name,
                api_version=found.api_version[:MAX_NAME],
                kind=found.kind[:MAX_NAME],
                labels=about.kept_labels,
                owner=about.owner,
                revision=(about.annotations or {}).get(_REVISION, "")[:MAX_NAME],
            )
        ),
    )
    if removed:
        yield Ended(execution=uid, n=0, at=at, activity=uid, status=0)


def describe_job_end(uid: Uid, job: Job) -> Iterator[AnyEvent]:
    for condition in job.status.conditions or ():
        status, since = _JOB_ENDS.get(condition.type), condition.last_transition_time
        if status is not None and since is not None and condition.status == "True":
            yield Ended(execution=uid, n=0, at=end_of_second(since), activity=uid, status=status)


def describe_service_addresses(uid: Uid, service: Service, *, at: int) -> Iterator[AnyEvent]:
    """The addresses that lead to a Service."""
    about = service.metadata
    for address in service.spec.cluster_ips or ():
        if (locator := address_locator(address)) is not None:
            name = service_locator(about.namespace, about.name)
            yield Alias(execution=uid, n=0, at=_created(about, at), a=locator, b=name)


def _created(about: Metadata, at: int) -> int:
    return end_of_second(about.creation_timestamp) if about.creation_timestamp else at
