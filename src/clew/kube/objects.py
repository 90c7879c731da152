"""Kubernetes' objects as plain JSON, and the few questions that everybody asks of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Json = dict[str, Any]
Object = Mapping[str, Any]


class Key(NamedTuple):
    """One resource, by the only name under which it can be found."""

    kind: str
    namespace: str
    name: str


def dig(found: Any, *path: str) -> Any:
    """What lies at a path, None where anything on the way is missing."""
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
    """The owner that answers for an object; empty without one."""
    owners = dig(found, "metadata", "ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def is_leaving(found: Object) -> bool:
    return bool(dig(found, "metadata", "deletionTimestamp"))


def condition_of(found: Object, kind: str) -> Object:
    """Empty when it is not said."""
    conditions = dig(found, "status", "conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), {})


def is_ready(found: Object) -> bool:
    return bool(condition_of(found, "Ready").get("status") == "True")


def digest_of(document: Object) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def moment(text: str | None) -> datetime | None:
    """A time as Kubernetes or Jupyter writes it; None for none, and for what is no time."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found else None


def written(time: datetime) -> str:
    """As Kubernetes writes times: in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
