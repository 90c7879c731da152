"""The annotations that the web app sets on resources; see docs/reference/operator.md."""

from clew.kube.controller.model import STOPPED
from clew.kube.culling.idleness import (
    IDLE_MINUTES,
    LAST_ACTIVITY,
    LAST_CHECK,
    OTHER_LAST_ACTIVITY,
)
from clew.kube.objects import Object, annotations_of
from clew.kube.resources.notebooks import HEADERS, REWRITE

__all__ = ["HEADERS", "IDLE_MINUTES", "LAST_ACTIVITY", "OTHER_LAST_ACTIVITY", "REWRITE", "STOPPED"]

REQUEST = "clew.dev/request"
"""The `Idempotency-Key` of the request that created a resource."""
WRITTEN_BY_SYSTEM = frozenset((LAST_ACTIVITY, LAST_CHECK, OTHER_LAST_ACTIVITY, REQUEST))
"""Users neither see nor edit them."""
CREATOR = "notebooks.kubeflow.org/creator"
SERVER_TYPE = "notebooks.kubeflow.org/server-type"
DIRECTORY = "clew.dev/directory"
"""On a volume of this machine: its directory, relative to the project."""


def made_by_request(resource: Object, key: str | None) -> bool:
    """Whether a resource was created by the request with this key."""
    return key is not None and annotations_of(resource).get(REQUEST) == key
