"""A NodeLatency: what the scheduler asks a node to measure, and what the node has found.

The API server checks the types and bounds of `deploy/scheduler/crd.yaml`. Readers check again that
the values are plausible.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.kube.objects import Json, format_time

API_VERSION = "latency.clew.dev/v1"
KIND = "NodeLatency"
PATH = "/apis/latency.clew.dev/v1/nodelatencies"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class Found(msgspec.Struct, frozen=True):
    """The latency to one location or node."""

    name: str
    ms: float
    at: datetime
    deviation_ms: float = msgspec.field(default=0.0, name="deviationMs")


class Status(msgspec.Struct, frozen=True):
    """Written by the agent of the node."""

    locations: list[Found] = []
    nodes: list[Found] = []
    unreachable: list[str] = []
    """Locations that do not answer."""


class AskedNode(msgspec.Struct, frozen=True):
    name: str
    address: str
    """An IP address, which the scheduler has from the Node."""


class Spec(msgspec.Struct, frozen=True):
    """Written by the scheduler: what the node is to measure besides its own locations."""

    locations: list[str] = []
    nodes: list[AskedNode] = []


class Named(msgspec.Struct, frozen=True):
    name: str


class NodeLatency(msgspec.Struct, frozen=True):
    metadata: Named
    spec: Spec = Spec()
    status: msgspec.Raw = msgspec.Raw(b"{}")
    """Undecoded: what a node wrote must not end the watch of all."""


_STATUS = msgspec.json.Decoder(Status)
_MOST_FOUND = 600


def parse_status(raw: msgspec.Raw) -> Status | None:
    """None if it is not what an agent writes."""
    try:
        status = _STATUS.decode(raw)
    except (msgspec.DecodeError, ValueError):
        return None
    size = len(status.locations) + len(status.nodes) + len(status.unreachable)
    return status if size <= _MOST_FOUND else None


def make_node_latency(name: str, node_uid: str, spec: Spec) -> Json:
    """It belongs to its Node, so Kubernetes deletes it with that."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node_uid}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "ownerReferences": [owner]},
        **make_spec(spec),
    }


def make_spec(spec: Spec) -> Json:
    """The body of a merge patch."""
    return {"spec": msgspec.to_builtins(spec)}


def make_status(
    locations: Sequence[Found], nodes: Sequence[Found], unreachable: Sequence[str]
) -> Json:
    """The body of a merge patch of the status."""
    return {
        "status": {
            "locations": [_describe(found) for found in locations],
            "nodes": [_describe(found) for found in nodes],
            "unreachable": list(unreachable),
        }
    }


def _describe(found: Found) -> Json:
    return {
        "name": found.name,
        "ms": round(found.ms, 4),
        "deviationMs": round(found.deviation_ms, 4),
        "at": format_time(found.at),
    }
