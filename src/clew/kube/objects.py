"""Kubernetes objects as plain JSON, and functions that read their common fields."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Json = dict[str, Any]
Object = Mapping[str, Any]


class Key(NamedTuple):
    """The identity of an object in the cluster."""

    kind: str
    namespace: str
    name: str


def dig(found: Any, *path: str) -> Any:
    """The value at a path; None if any part of the path is missing."""
    for step in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def name_of(found: Object) -> str:
    return str(found["metadata"]["name"])


def namespace_of(found: Object) -> str:
    return str(found["metadata"]["namespace"])


def uid_of(found: Object) -> str:
    return str(found["metadata"]["uid"])


def labels_of(found: Object) -> Mapping[str, str]:
    return dig(found, "metadata", "labels") or {}


def annotations_of(found: Object) -> Mapping[str, str]:
    return dig(found, "metadata", "annotations") or {}


def controller_of(found: Object) -> Object:
    """The owner reference of the controller of an object; empty without one."""
    owners = dig(found, "metadata", "ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def is_deleting(found: Object) -> bool:
    return bool(dig(found, "metadata", "deletionTimestamp"))


def condition_of(found: Object, kind: str) -> Object:
    """Empty if the status has no such condition."""
    conditions = dig(found, "status", "conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), {})


def is_ready(found: Object) -> bool:
    return bool(condition_of(found, "Ready").get("status") == "True")


def find_reason(found: Object) -> str | None:
    """Why a resource is not ready, as the operator says it in its status."""
    if is_deleting(found):
        return "It is being deleted."
    condition = condition_of(found, "Ready")
    if condition.get("status") == "True":
        return None
    if not condition:
        return "The operator has not looked at it yet."
    return str(condition.get("message") or condition.get("reason"))


def digest_of(document: Object) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def parse_time(text: str | None) -> datetime | None:
    """Parse a time as Kubernetes or Jupyter writes it; None for an empty or invalid one."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


def format_time(time: datetime) -> str:
    """Format a time as Kubernetes does: UTC, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
