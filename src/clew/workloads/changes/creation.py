"""Create notebooks, TensorBoards, volumes and viewers; the same request twice creates them once.

A request with a key leaves that key on what it creates. If the name is taken by a resource with the
same key, the request was made before, and has succeeded.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from clew.errors import ClewError, Exists, NotFound, UsageError
from clew.kube.objects import Json, Key, Object, dig, name_of, namespace_of
from clew.workloads.annotations import made_by_request
from clew.workloads.backend import Backend
from clew.workloads.changes.pod_restrictions import check_host_access
from clew.workloads.forms.notebook_form import build_notebook
from clew.workloads.forms.notebook_volumes import check_claim_name
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.tensorboards import build_tensorboard
from clew.workloads.volumes import build_viewer, build_volume, claims_of


def create_notebook(
    backend: Backend,
    namespace: str,
    body: Mapping[str, Any],
    defaults: FormDefaults,
    request: str | None,
) -> Json:
    """Create a notebook and its new volumes, or neither."""
    plan = build_notebook(body, defaults, namespace=namespace, user=backend.user, request=request)
    check_host_access(plan.notebook, {}, defaults)
    new = {name_of(claim) for claim in plan.claims}
    for name in sorted(claims_of(plan.notebook) - new):
        _check_claim_exists(backend, namespace, name)
    for resource in (plan.notebook, *plan.claims):
        found = _find_or_create(backend, resource, request, dry_run=True)
        if resource is plan.notebook and found is not None:
            return found
    made: list[Key] = []
    try:
        for claim in plan.claims:
            if _find_or_create(backend, claim, request) is None:
                made.append(key_of(claim))
        return _find_or_create(backend, plan.notebook, request) or plan.notebook
    except ClewError:
        for key in made:
            with suppress(ClewError):
                backend.delete(key)
        raise


def create_tensorboard(
    backend: Backend, namespace: str, body: Mapping[str, Any], request: str | None
) -> None:
    resource = build_tensorboard(body, namespace=namespace, request=request)
    _find_or_create(backend, resource, request)


def create_volume(
    backend: Backend, namespace: str, body: Mapping[str, Any], request: str | None
) -> None:
    resource = build_volume(body, namespace=namespace, request=request)
    _find_or_create(backend, resource, request)


def create_viewer(
    backend: Backend, namespace: str, body: Mapping[str, Any], request: str | None
) -> None:
    """Create the viewer of a volume."""
    claim = check_claim_name(body.get("name"))
    _check_claim_exists(backend, namespace, claim)
    _find_or_create(backend, build_viewer(claim, namespace=namespace, request=request), request)


def key_of(resource: Object) -> Key:
    return Key(str(resource["kind"]), namespace_of(resource), name_of(resource))


def _find_or_create(
    backend: Backend, resource: Object, request: str | None, *, dry_run: bool = False
) -> Json | None:
    """Create a resource; returns it only if the same request made it before."""
    try:
        backend.create(resource, dry_run=dry_run)
    except Exists:
        if request is None:
            raise
        with suppress(NotFound):
            found = backend.get(key_of(resource))
            if made_by_request(found, request):
                return found
        raise
    return None


def _check_claim_exists(backend: Backend, namespace: str, claim: str) -> None:
    try:
        found = backend.get(Key("PersistentVolumeClaim", namespace, claim))
    except NotFound as error:
        raise UsageError(
            f"there is no volume {claim}", hint="choose another one, or create it"
        ) from error
    if dig(found, "metadata", "deletionTimestamp"):
        raise UsageError(f"the volume {claim} is being deleted", hint="choose another one")
