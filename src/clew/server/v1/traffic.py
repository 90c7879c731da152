"""The proxy's traffic per target, for the culler."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from clew.prov.queries.formats import format_time
from clew.server.catalogue import proxy_traffic
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.schemas import Document

router = APIRouter(tags=["traffic"])


class TargetTraffic(Document):
    kind: str
    namespace: str
    name: str
    last_activity: str
    requests: int
    sockets: int
    bytes_in: int
    bytes_out: int


class TrafficList(Document):
    traffic: list[TargetTraffic]


@router.get("/traffic", response_model=TrafficList)
def list_traffic(service: ServiceDep) -> Any:
    """By target, through all servers that share the database."""
    with service.graph() as graph:
        found = proxy_traffic.list_traffic(graph)
    return {
        "traffic": [{**vars(one), "last_activity": format_time(one.last_activity)} for one in found]
    }
