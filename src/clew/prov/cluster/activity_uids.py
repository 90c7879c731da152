"""The uids of what runs in a cluster, derived from what every witness sees.

A witness that knows a Pod only by the name of its cgroup, and one that knows it from the API
server, must name it alike without asking each other.
"""

import re
from typing import Final

from blake3 import blake3

from clew.documents.ids import Uid

POD: Final = "pod"
CONTAINER: Final = "container"
CLAIM: Final = "claim"
CONTROLLER: Final = "controller"
REQUEST: Final = "request"
NODE: Final = "node"

CLUSTER_KINDS: Final = frozenset({POD, CLAIM, CONTROLLER, REQUEST, NODE})
"""The kinds of executions that only the witnesses of a cluster describe."""

LEFT: Final = "left"
"""The kind of a look by which a Pod says that the Service at the place leads to it no more."""

_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_CONTAINER_ID = re.compile(r"(?:[a-z0-9.-]+://)?([0-9A-Za-z._-]{8,200})")


def object_uid(uid: str) -> Uid | None:
    """The uid of the execution for an object with this uid; None if it is none."""
    return Uid(uid.replace("-", "").lower()) if _UUID.fullmatch(uid) else None


def container_uid(pod: Uid, container_id: str) -> Uid | None:
    """The uid of a container of a Pod. `container_id` is the runtime's, with or without
    `containerd://`."""
    match = _CONTAINER_ID.fullmatch(container_id)
    return Uid(f"{pod}/{match[1]}") if match else None


def node_uid(name: str, boot_id: str) -> Uid:
    """The uid of a boot of a node. Test clusters have several nodes on one machine."""
    return Uid(blake3(f"node\0{name}\0{boot_id}".encode()).hexdigest(length=16))
