"""The Pods that answer for a Service or a name of the cluster now, and what runs in them."""

from collections.abc import Iterator

import msgspec
from blake3 import blake3

from clew.documents.ids import Digest, Locator, Uid
from clew.errors import NotAllowed
from clew.kube.objects import Json, Key, dig, name_of, namespace_of, uid_of
from clew.kube.scratch.scratch_client import ScratchClient
from clew.prov.cluster.ancestry_types import Peer, PeerPod
from clew.prov.cluster.locators import image_digest
from clew.replay.pods.peer_changes import explain_changes
from clew.witness.kubernetes_audit.endpoints import SERVICE_OF
from clew.witness.kubernetes_audit.object_types import ConfigMap, EndpointSlice, Pod, decode_object
from clew.witness.kubernetes_audit.pods.container_inputs import find_inputs
from clew.witness.kubernetes_audit.requests import serialize_config_map

_SERVICE = "service://"
_CONFIG_MAP = "configmap://"
_MOST = 100
"""Pods of a Service that are looked at."""


def find_peer_change(client: ScratchClient, peer: Peer) -> str:
    """How a Service or a Pod differs from what it was when it was asked."""
    try:
        now = _find_answering_pods(client, peer.locator)
    except NotAllowed:
        return "you lack the right to read it, so it may have changed"
    if now is None:
        return "it is gone"
    return explain_changes(peer.pods, now) or "the images and ConfigMaps behind it are as they were"


def _find_answering_pods(client: ScratchClient, place: Locator) -> list[PeerPod] | None:
    """None: there is no such Service or Pod."""
    kind = "Service" if place.startswith(_SERVICE) else "Pod"
    namespace, _, name = place.partition("://")[2].partition("/")
    found = client.find(Key(kind, namespace, name))
    if found is None:
        return None
    pods = [found] if kind == "Pod" else list(_list_endpoints(client, namespace, name))
    return [_describe(client, pod) for pod in pods]


def _list_endpoints(client: ScratchClient, namespace: str, service: str) -> Iterator[Json]:
    names: dict[str, None] = {}
    for found in client.list("EndpointSlice", namespace, labels={SERVICE_OF: service}):
        listed = decode_object(msgspec.Raw(msgspec.json.encode(found)), EndpointSlice)
        for endpoint in (listed.endpoints if listed is not None else None) or ():
            target = endpoint.target_ref
            if target is not None and target.kind == "Pod" and endpoint.conditions.is_serving:
                names[target.name] = None
    for name in list(names)[:_MOST]:
        pod = client.find(Key("Pod", namespace, name))
        if pod is not None:
            yield pod


def _describe(client: ScratchClient, pod: Json) -> PeerPod:
    statuses = (
        status
        for field in ("initContainerStatuses", "containerStatuses")
        for status in dig(pod, "status", field) or ()
    )
    images = {str(one["name"]): image_digest(str(one.get("imageID", ""))) for one in statuses}
    return PeerPod(
        uid=Uid(uid_of(pod)),
        namespace=namespace_of(pod),
        name=name_of(pod),
        images={name: digest for name, digest in images.items() if digest},
        config_maps=dict(_read_config_maps(client, pod)),
    )


def _read_config_maps(client: ScratchClient, pod: Json) -> Iterator[tuple[str, Digest]]:
    decoded = decode_object(msgspec.Raw(msgspec.json.encode(pod)), Pod)
    if decoded is None:
        return
    containers = [
        one for field in ("initContainers", "containers") for one in decoded.spec.get(field) or ()
    ]
    read = {place for one in containers for place in find_inputs(decoded, one).read}
    for place in sorted(read):
        if place.startswith(_CONFIG_MAP):
            name = place.rpartition("/")[2]
            found = client.find(Key("ConfigMap", namespace_of(pod), name))
            config_map = found and decode_object(msgspec.Raw(msgspec.json.encode(found)), ConfigMap)
            if config_map:
                data = serialize_config_map(config_map)
                yield name, Digest(f"blake3:{blake3(data).hexdigest()}")
