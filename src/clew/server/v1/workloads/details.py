"""Everything about a notebook, TensorBoard, volume or viewer, and changes to it."""

from typing import Annotated, Literal

from fastapi import Path

from clew.documents.workloads.forms import NotebookEdit, YamlForm
from clew.documents.workloads.workload import Workload
from clew.errors import UsageError
from clew.server.kubeflow.request_body import Body, describe_body
from clew.server.v1.dependencies import BackendDep, FormDefaultsDep, Namespace
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.changes.edits import change, replace_yaml
from clew.workloads.details import describe, key_for

router = DocumentRouter(tags=["workloads"])

Collection = Annotated[
    Literal["notebooks", "tensorboards", "volumes", "viewers"],
    Path(description="What kind of workload it is."),
]
WORKLOAD = "/namespaces/{namespace}/{collection}/{name}"


@router.get(WORKLOAD)
def get_workload(
    backend: BackendDep, namespace: Namespace, collection: Collection, name: str
) -> Workload:
    return describe(backend, collection, namespace, name)


@router.patch(WORKLOAD, openapi_extra=describe_body(NotebookEdit))
def change_workload(
    backend: BackendDep,
    defaults: FormDefaultsDep,
    namespace: Namespace,
    collection: Collection,
    name: str,
    body: Body,
) -> Workload:
    """Change the given fields of a notebook; stop or start anything but a volume. What runs is
    started again if it needs to be."""
    change(backend, key_for(collection, namespace, name), body, defaults)
    return describe(backend, collection, namespace, name)


@router.put(f"{WORKLOAD}/yaml", openapi_extra=describe_body(YamlForm))
def replace_workload(
    backend: BackendDep,
    defaults: FormDefaultsDep,
    namespace: Namespace,
    collection: Collection,
    name: str,
    body: Body,
) -> Workload:
    """Replace labels, annotations and the specification. 409: it was changed since it was read."""
    text, base = body.get("yaml"), body.get("base")
    if not isinstance(text, str) or not isinstance(base, str | None):
        raise UsageError("the body must have the key yaml, which is a text, as is base")
    replace_yaml(backend, key_for(collection, namespace, name), text, defaults, base=base)
    return describe(backend, collection, namespace, name)
