"""The NetworkPolicy of a notebook, TensorBoard or viewer: who may open connections to its Pod.

Always the server and the operator, which asks notebooks whether they are idle; beyond these, the
peers that the operator was started with. Policies add up, so a user who needs more (Spark executors
that call back, say) adds another policy. Connections that the Pod itself opens stay free.
"""

import ipaddress
import re
from collections.abc import Mapping

from clew.kube.controller.model import make_manifest
from clew.kube.controller.options import Options
from clew.kube.objects import Json, Object

PREFIX = "clew-"
_NAMESPACE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def make_network_policy(
    parent: Object, workload: str, *, selector: Mapping[str, str], options: Options
) -> Json:
    """`selector` are the labels of the Pods of this workload."""
    server_and_operator = {
        "namespaceSelector": _namespace_selector(options.own_namespace),
        "podSelector": {
            "matchExpressions": [
                {
                    "key": "app.kubernetes.io/name",
                    "operator": "In",
                    "values": ["clew-server", "clew-operator"],
                }
            ]
        },
    }
    spec = {
        "podSelector": {"matchLabels": dict(selector)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [server_and_operator, *map(parse_peer, options.allow_from)]}],
    }
    name = f"{PREFIX}{workload}"
    return make_manifest(parent, "networking.k8s.io/v1", "NetworkPolicy", name, spec, selector)


def parse_peer(text: str) -> Json:
    """A peer that may connect: NAMESPACE, NAMESPACE/LABEL=VALUE, or a range of addresses."""
    try:
        return {"ipBlock": {"cidr": str(ipaddress.ip_network(text))}}
    except ValueError:
        namespace, slash, label = text.partition("/")
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(f"not a namespace, NAMESPACE/LABEL=VALUE or range of addresses: {text}")
    peer: Json = {"namespaceSelector": _namespace_selector(namespace)}
    if slash:
        key, _, value = label.partition("=")
        if not _LABEL.fullmatch(key) or not _VALUE.fullmatch(value):
            raise ValueError(f"not LABEL=VALUE: {label}")
        peer["podSelector"] = {"matchLabels": {key: value}}
    return peer


def _namespace_selector(namespace: str) -> Json:
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
