"""The audit log itself: an execution of the kind `controller`, to which its gaps belong."""

from collections.abc import Iterator
from typing import Final

from blake3 import blake3

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import CONTROLLER
from clew.prov.cluster.facets import ControllerFacet, write_facet
from clew.prov.events import AnyEvent, Gap, Started

KIND: Final = "AuditLog"


def source_uid(name: str) -> Uid:
    return Uid(blake3(f"audit log\0{name}".encode()).hexdigest(length=16))


def describe_gap(source: str, at: int, what: str, why: str) -> Iterator[AnyEvent]:
    """Something of the log of this name was not seen. The name tells logs of several API servers
    apart."""
    uid = source_uid(source)
    yield Started(
        execution=uid,
        n=0,
        at=0,
        activity=uid,
        kind=CONTROLLER,
        name=source,
        facets=write_facet(
            ControllerFacet(namespace="", name=source, api_version="audit.k8s.io/v1", kind=KIND)
        ),
    )
    yield Gap(execution=uid, n=0, at=at, activity=uid, what=what, why=why)
