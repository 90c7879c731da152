"""What existed in a cluster at a time."""

from datetime import datetime

from clew.documents.document import Document
from clew.documents.ids import Digest, ExecutionId


class ClusterObject(Document, frozen=True, kw_only=True):
    """An object of Kubernetes, as far as it was observed."""

    kind: str
    """As Kubernetes names it: Pod, PersistentVolumeClaim, Deployment, Service, ConfigMap, …"""
    namespace: str
    name: str
    id: ExecutionId | None
    """null: a ConfigMap or a Secret, which has versions in place of an execution."""
    since: datetime
    """When it was created; of a ConfigMap or a Secret, when it was written last."""
    agent: str | None
    """Who created it, or wrote it last."""
    owner: str | None
    """The kind and the name of its controller."""
    node: str | None
    images: dict[str, str]
    """Of a Pod: the digests of the images of its containers, by their names."""
    volume: str | None
    """Of a claim: the PersistentVolume that it was bound to."""
    pods: tuple[str, ...]
    """Of a Service: the Pods that it led to."""
    digest: Digest | None
    """Of a ConfigMap: its data."""


class ClusterState(Document, frozen=True, kw_only=True):
    """All objects that existed at a time, by kind, namespace and name."""

    at: datetime
    objects: tuple[ClusterObject, ...]
    truncated: bool
    """There were more."""
