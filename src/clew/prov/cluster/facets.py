"""The facet `kubernetes`: what a witness knows of an object, by the kind of its activity.

Each kind of a cluster has its own shape. Witnesses write these structs and queries read them, so
that both agree on names. A facet may come from a server or a file of another party: `read_facet`
answers None for one of another shape.

    pod          its `started` has the name NAMESPACE/NAME, the node, and the user who created it
    container    its `started` has command, environment and the image as written
    claim, controller, request
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from clew.prov.cluster.activity_uids import CLAIM, CONTAINER, CONTROLLER, POD, REQUEST

FACET: Final = "kubernetes"


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The controller of an object, as its `metadata.ownerReferences` names it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""  # as Kubernetes writes it; `activities.object_uid` makes an execution's of it


class PodFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Pod, as it was admitted."""

    namespace: str
    name: str
    labels: dict[str, str] = {}
    owner: Owner | None = None
    service_account: str = ""
    spec: dict[str, Any] = {}
    """The document of the API server; the values of secrets in it are masked."""


class ContainerFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One start of a container."""

    name: str
    restart: int = 0
    init: bool = False


class Backing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the bytes of a volume are."""

    driver: str  # a CSI driver, or the name of the volume's type: nfs, local, hostPath
    handle: str = ""  # the CSI driver's own name of the volume
    server: str = ""
    path: str = ""


class ClaimFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A PersistentVolumeClaim; the volume and its backing are known when it is bound."""

    namespace: str
    name: str
    volume: str = ""
    storage_class: str = ""
    backing: Backing | None = None


class ControllerFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What creates Pods or other controllers: a Deployment, a Job, a Notebook."""

    namespace: str
    name: str
    api_version: str = ""
    kind: str = ""
    labels: dict[str, str] = {}
    owner: Owner | None = None
    revision: str = ""
    """Of a ReplicaSet: which revision of its Deployment it is."""


class RequestFacet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request to the API server."""

    verb: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    resource_version: str = ""
    """Of the object: after the request, or before it if the answer was not seen (Secrets)."""


KubernetesFacet = PodFacet | ContainerFacet | ClaimFacet | ControllerFacet | RequestFacet
FACET_TYPES: Final[Mapping[str, type[KubernetesFacet]]] = {
    POD: PodFacet,
    CONTAINER: ContainerFacet,
    CLAIM: ClaimFacet,
    CONTROLLER: ControllerFacet,
    REQUEST: RequestFacet,
}
"""By the kind of the activity."""

_IN_FACET: Final = frozenset({CLAIM, CONTROLLER, REQUEST})
"""The kinds whose facet says in which namespace they are: a request has no name."""

_Facet = TypeVar("_Facet", bound=KubernetesFacet)


def write_facet(facet: KubernetesFacet) -> dict[str, Any]:
    """The facets of an activity, with this one; merge others into it."""
    return {FACET: msgspec.to_builtins(facet)}


def read_facet(facets: Mapping[str, Any], kind: type[_Facet]) -> _Facet | None:
    """What an activity's facets say about it; None if they lack it or have another shape."""
    try:
        return msgspec.convert(facets.get(FACET), kind)
    except msgspec.ValidationError:
        return None


def namespace_of_activity(kind: str | None, name: str | None, facets: object) -> str | None:
    """The namespace that an execution of a cluster is in, which decides who may read it. `facets`
    may have any shape."""
    facet = facets.get(FACET) if kind in _IN_FACET and isinstance(facets, dict) else None
    namespace = facet.get("namespace") if isinstance(facet, dict) else None
    return namespace if isinstance(namespace, str) else namespace_of_name(name)


def namespace_of_name(name: str | None) -> str | None:
    """The namespace in NAMESPACE/NAME."""
    namespace, slash, _ = (name or "").partition("/")
    return namespace if slash else None
