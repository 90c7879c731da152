"""The proxy's traffic per target, for the culler."""

from clew.documents.document import from_nanoseconds
from clew.documents.project.proxy_traffic import TargetTraffic, TrafficList
from clew.server.catalogue import proxy_traffic
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["traffic"])


@router.get("/traffic")
def list_traffic(service: ServiceDep) -> TrafficList:
    """By target, through all servers that share the database."""
    with service.graph() as graph:
        found = proxy_traffic.list_traffic(graph)
    return TrafficList(
        traffic=tuple(
            TargetTraffic(**{**vars(one), "last_activity": from_nanoseconds(one.last_activity)})
            for one in found
        )
    )
