"""Audit events as an API server writes them, for tests."""

import json
from typing import Any

from clew.prov.events import AnyEvent
from clew.witness.kubernetes_audit.audit_event import parse_event
from clew.witness.kubernetes_audit.fold import AuditFold, Observed
from clew.witness.kubernetes_audit.fold_state import FoldState

NAMESPACE = "team"
NODE = {"username": "system:node:node1", "groups": ["system:nodes"]}
CONTROLLER = {"username": "system:serviceaccount:kube-system:job-controller", "groups": []}
POD_UID = "0a1b2c3d-0000-4000-8000-000000000001"
POD = POD_UID.replace("-", "")
CONTAINER_ID = "c" * 64
IMAGE = f"docker.io/app@sha256:{'1' * 64}"
SECOND = 1_000_000_000
START = 1_795_000_000
"""The time of second 0 of a test, in seconds."""


def time(second: float) -> str:
    """An RFC 3339 time, `second` seconds after the start: whole ones as in objects."""
    from datetime import UTC, datetime

    at = datetime.fromtimestamp(START + second, UTC)
    whole = isinstance(second, int)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ" if whole else "%Y-%m-%dT%H:%M:%S.%fZ")


def audit(
    verb: str,
    resource: str,
    answer: dict[str, Any] | None = None,
    *,
    name: str = "",
    at: float = 1.0,
    user: dict[str, Any] | str = "ann",
    **more: Any,
) -> dict[str, Any]:
    """An audit event. `resource`: `pods`, `pods/exec`, `batch/jobs`."""
    group, _, rest = resource.partition("/") if resource.startswith(GROUPS) else ("", "", resource)
    kind, _, subresource = rest.partition("/")
    about = {"resource": kind, "namespace": NAMESPACE, "apiVersion": "v1", "apiGroup": group}
    about |= {"subresource": subresource} if subresource else {}
    about |= {"name": name} if name else {}
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse" if answer else "Metadata",
        "auditID": more.pop("audit_id", "11111111-2222-4333-8444-555555555555"),
        "stage": more.pop("stage", "ResponseComplete"),
        "requestURI": more.pop("uri", f"/api/v1/namespaces/{NAMESPACE}/{rest}"),
        "verb": verb,
        "user": {"username": user, "groups": []} if isinstance(user, str) else user,
        "userAgent": more.pop("agent", "program/1"),
        "objectRef": about,
        "responseStatus": {"code": more.pop("code", 201 if verb == "create" else 200)},
        **({"responseObject": answer} if answer else {}),
        "requestReceivedTimestamp": time(float(at)),
        "stageTimestamp": time(float(at)),
        **more,
    }


GROUPS = ("batch/", "apps/", "discovery.k8s.io/", "kubeflow.org/")


def pod(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    about = {
        "name": "train",
        "namespace": NAMESPACE,
        "uid": POD_UID,
        "creationTimestamp": time(0),
        "labels": {"app": "train"},
        **spec.pop("metadata", {}),
    }
    container = {"name": "main", "image": "app:1", **spec.pop("container", {})}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": about,
        "spec": {"containers": [container], **spec},
        "status": status or {"phase": "Pending"},
    }


def running(second: int = 5, **more: Any) -> dict[str, Any]:
    """The status of a Pod whose container runs."""
    state = {"running": {"startedAt": time(second)}}
    return _status("Running", state, **more)


def ended(second: int = 9, code: int = 0, **more: Any) -> dict[str, Any]:
    state = {
        "terminated": {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": time(5),
            "finishedAt": time(second),
            "containerID": f"containerd://{CONTAINER_ID}",
        }
    }
    return _status("Failed" if code else "Succeeded", state, **more)


def _status(phase: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "phase": phase,
        "podIPs": [{"ip": "10.0.0.7"}],
        "conditions": [
            {
                "type": "PodReadyToStartContainers",
                "status": "True" if phase == "Running" else "False",
                "lastTransitionTime": time(4),
            }
        ],
        "containerStatuses": [
            {
                "name": "main",
                "image": "app:1",
                "imageID": IMAGE,
                "containerID": f"containerd://{CONTAINER_ID}",
                "restartCount": 0,
                "state": state,
                "lastState": {},
                **more,
            }
        ],
    }


def fold(*events: dict[str, Any], state: FoldState | None = None) -> Observed:
    found = Observed()
    folding = AuditFold(state or FoldState(), source="log")
    for event in events:
        folding.add(parse_event(json.dumps(event).encode()), found)
    return found


def of(found: Observed, of_type: type[AnyEvent], /, **fields: Any) -> list[Any]:
    """The events of a type with these fields, each once."""
    events = [
        event
        for event in found.events
        if isinstance(event, of_type) and all(getattr(event, n) == v for n, v in fields.items())
    ]
    return [event for number, event in enumerate(events) if event not in events[:number]]
