"""The JSON that kube-scheduler and its extenders exchange.

kube-scheduler's types have no JSON names: it writes `NodeNames`, and reads any case. So keys are
read in any case, and written as Go writes them. Only names of nodes are exchanged: whole nodes
would be a hundred times as much.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from clew.errors import UsageError

MAX_BODY_BYTES = 8 << 20
"""A Pod has at most 1.5 MB, and 5,000 names have 0.3."""
_MAX_NODES = 50_000


class Owner(msgspec.Struct, frozen=True):
    uid: str = ""
    controller: bool | None = None


class Metadata(msgspec.Struct, frozen=True):
    """What is read of an object's metadata."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owners: list[Owner] | None = msgspec.field(default=None, name="ownerReferences")


class PodSpec(msgspec.Struct, frozen=True):
    node: str | None = msgspec.field(default=None, name="nodeName")


class Pod(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: PodSpec = PodSpec()

    @property
    def owner(self) -> str:
        """The uid of its controller: Pods with the same one are replicas. Empty without one."""
        owners = self.metadata.owners or ()
        return next((owner.uid for owner in owners if owner.controller), "")


class NodeAddress(msgspec.Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeStatus(msgspec.Struct, frozen=True):
    addresses: list[NodeAddress] | None = None


class Node(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: NodeStatus = NodeStatus()

    @property
    def internal_address(self) -> str:
        """Where other nodes reach it; empty if that is not known."""
        addresses = self.status.addresses or ()
        return next((one.address for one in addresses if one.type == "InternalIP"), "")


class Arguments(msgspec.Struct, frozen=True):
    pod: Pod
    nodes: list[str]


class HostPriority(msgspec.Struct, frozen=True, gc=False):
    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


class FilterResult(msgspec.Struct, frozen=True):
    names: Sequence[str] = msgspec.field(name="NodeNames")
    unresolvable: Mapping[str, str] = msgspec.field(name="FailedAndUnresolvableNodes")
    """Preempting Pods on these nodes would not help."""
    nodes: None = msgspec.field(default=None, name="Nodes")
    failed: Mapping[str, str] = msgspec.field(default_factory=dict, name="FailedNodes")
    error: str = msgspec.field(default="", name="Error")


_OUTER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_POD = msgspec.json.Decoder(Pod)
_NAMES = msgspec.json.Decoder(list[str] | None)
_ENCODER = msgspec.json.Encoder()


def parse_arguments(body: bytes) -> Arguments:
    """Raises UsageError for anything that is no request of kube-scheduler."""
    try:
        outer = {key.lower(): value for key, value in _OUTER.decode(body).items()}
        if "pod" not in outer:
            raise UsageError("the request has no Pod")
        pod = _POD.decode(outer["pod"])
        names = _NAMES.decode(outer["nodenames"]) if "nodenames" in outer else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the request is not that of kube-scheduler: {error}") from error
    if names is None:
        raise UsageError(
            "the request has no names of nodes", hint="set nodeCacheCapable: true for the extender"
        )
    if len(names) > _MAX_NODES:
        raise UsageError(f"the request has more than {_MAX_NODES} nodes")
    return Arguments(pod, names)


def encode_filter_result(kept: Sequence[str], rejected: Iterable[str], reason: str) -> bytes:
    return _ENCODER.encode(FilterResult(kept, dict.fromkeys(rejected, reason)))


def encode_scores(scores: Mapping[str, int]) -> bytes:
    return _ENCODER.encode([HostPriority(name, score) for name, score in scores.items()])
