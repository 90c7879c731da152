"""The Service of a server, and its VirtualService for Istio."""

from collections.abc import Mapping

from clew.kube.controller.model import make_manifest
from clew.kube.controller.options import Istio, Options
from clew.kube.objects import Json, Object, namespace_of
from clew.kube.proxy_route import ProxyRoute, route_annotation


def make_service(
    parent: Object,
    name: str,
    *,
    port: str,
    target: int | str,
    selector: Mapping[str, str],
    route: ProxyRoute = ProxyRoute(),  # noqa: B008 - it cannot change
) -> Json:
    """`route` is for the proxy of `clew server`, used without Istio."""
    spec = {
        "type": "ClusterIP",
        "selector": dict(selector),
        "ports": [{"name": port, "port": 80, "targetPort": target, "protocol": "TCP"}],
    }
    return make_manifest(parent, "v1", "Service", name, spec, selector, route_annotation(route))


def make_virtual_service(
    parent: Object,
    name: str,
    *,
    to: str,
    prefix: str,
    rewrite: str,
    istio: Istio,
    options: Options,
    headers: Mapping[str, str] | None = None,
    timeout: str = "",
) -> Json:
    """`to` is the Service; `headers` are set on each request."""
    route: Json = {
        "match": [{"uri": {"prefix": prefix}}],
        "rewrite": {"uri": rewrite},
        "route": [
            {
                "destination": {
                    "host": f"{to}.{namespace_of(parent)}.svc.{options.cluster_domain}",
                    "port": {"number": 80},
                }
            }
        ],
    }
    if headers is not None:
        route["headers"] = {"request": {"set": dict(headers)}}
    if timeout:
        route["timeout"] = timeout
    spec = {"hosts": [istio.host], "gateways": [istio.gateway], "http": [route]}
    return make_manifest(parent, "networking.istio.io/v1alpha3", "VirtualService", name, spec, {})
