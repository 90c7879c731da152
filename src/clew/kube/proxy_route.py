"""How the proxy of `clew server` forwards requests to a Service, kept in an annotation of it.

The operator writes the annotation and the proxy reads it. So the proxy needs to read nothing but
Services, and need not know which resource they were made from.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from clew.kube.objects import Object, annotations_of, dig

ROUTE_ANNOTATION = "clew.dev/way"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


@dataclass(frozen=True)
class ProxyRoute:
    """How a request is changed before it is forwarded."""

    rewrite: str | None = None
    """Replaces the prefix of the path; None: the path stays as it is."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Set on every request."""
    timeout: float | None = None
    """Seconds until the response must begin; None: the default of the proxy."""
    base: str | None = None
    """The part of the path before the namespace; None: the default of the kind."""
    access: bool = False
    """Whether the Pod expects an access token on each request."""


def route_annotation(route: ProxyRoute) -> dict[str, str]:
    """Always present, even for the default route: otherwise a removed setting would stay."""
    document = {**vars(route), "headers": dict(route.headers)}
    kept = {name: value for name, value in document.items() if value}
    return {ROUTE_ANNOTATION: json.dumps(kept, sort_keys=True)}


def read_route(service: Object) -> ProxyRoute:
    """The route in the annotation of a Service; invalid values are ignored."""
    try:
        document = json.loads(annotations_of(service).get(ROUTE_ANNOTATION, "{}"))
    except ValueError:
        return ProxyRoute()
    rewrite, headers, timeout, base, access = (
        dig(document, each.name) for each in fields(ProxyRoute)
    )
    return ProxyRoute(
        rewrite=rewrite if isinstance(rewrite, str) else None,
        headers=headers if isinstance(headers, Mapping) else {},
        timeout=float(timeout) if isinstance(timeout, int | float) and timeout > 0 else None,
        base=base if isinstance(base, str) else None,
        access=access is True,
    )


def parse_duration(text: str) -> float | None:
    """Seconds of a duration as Istio writes it (30s, 1m30s); None if it is invalid."""
    parts = _TIME.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts) or None
