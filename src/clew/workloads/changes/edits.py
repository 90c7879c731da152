"""Change resources that exist: start and stop them, edit a notebook by its form, edit the YAML.

The administrator's rules hold for edits as for the creation: what a form may not set, YAML may not
set, either.
"""

import copy
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from clew.bounded_documents import load_documents
from clew.errors import Conflict, UsageError
from clew.kube.controller.model import is_stopped
from clew.kube.objects import Json, Key, Object, annotations_of, dig, format_time
from clew.workloads import annotations
from clew.workloads.backend import Backend
from clew.workloads.changes.pod_restrictions import check_edit, check_host_access
from clew.workloads.details import to_yaml
from clew.workloads.forms.notebook_form import Form
from clew.workloads.forms.notebook_volumes import SHARED_MEMORY, Volumes
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.notebooks import container_of

_RESOURCES = ("cpu", "cpuLimit", "memory", "memoryLimit", "gpus")
_VOLUMES = ("workspace", "datavols", "shm")
_PLACEMENT = {"affinityConfig": "affinity", "tolerationGroup": "tolerations"}
"""The effect of each field: one that is not mentioned stays, also if no option has its value."""
_MAX_YAML = 1 << 20
_ATTEMPTS = 3


def set_stopped(backend: Backend, key: Key, stopped: bool) -> None:
    """Conflict: it is stopped already."""
    if stopped and is_stopped(backend.get(key)):
        raise Conflict(f"{key.name} is stopped already", hint="start it first")
    value = format_time(datetime.now(UTC)) if stopped else None
    backend.merge_patch(key, {"metadata": {"annotations": {annotations.STOPPED: value}}})


def change(backend: Backend, key: Key, body: Mapping[str, Any], defaults: FormDefaults) -> None:
    """Change the given fields of a notebook's form; stop or start anything but a volume."""
    fields = {name: value for name, value in body.items() if name != "stopped"}
    stopped = body.get("stopped")
    if "stopped" in body and not isinstance(stopped, bool):
        raise UsageError("stopped must be true or false")
    if key.kind == "PersistentVolumeClaim":
        raise UsageError("a volume has no form", hint="edit its YAML")
    if fields and key.kind != "Notebook":
        raise UsageError(f"{min(fields)[:80]} cannot be changed here", hint="edit its YAML")
    if fields:
        edit_notebook(backend, key, fields, defaults)
    if isinstance(stopped, bool) and stopped != is_stopped(backend.get(key)):
        set_stopped(backend, key, stopped)


def edit_notebook(
    backend: Backend, key: Key, body: Mapping[str, Any], defaults: FormDefaults
) -> None:
    """Change the given fields of the form. `workspace` and `datavols` together replace all
    volumes."""
    current = backend.get(key)
    edited, claims = apply_form(copy.deepcopy(current), body, defaults)
    check_host_access(edited, current, defaults)
    made = [claim | {"metadata": claim["metadata"] | {"namespace": key.namespace}}
            for claim in claims]  # fmt: skip
    for claim in made:
        backend.create(claim, dry_run=True)
    for claim in made:
        backend.create(claim)
    backend.replace(edited)


def apply_form(
    notebook: Json, body: Mapping[str, Any], defaults: FormDefaults
) -> tuple[Json, list[Json]]:
    """The changed notebook, and the volumes to create for it."""
    form = Form(body, defaults)
    container = container_of(notebook)
    assert isinstance(container, dict)
    pod = notebook["spec"]["template"]["spec"]
    notes = notebook["metadata"].setdefault("annotations", {})
    if {"image", "customImage"} & body.keys():
        container["image"] = form.image(notes.get(annotations.SERVER_TYPE, "jupyter"))
    if "imagePullPolicy" in body:
        container["imagePullPolicy"] = form.pull_policy()
    if set(_RESOURCES) & body.keys():
        container["resources"] = _edit_resources(container, body, defaults)
    if "environment" in body:
        kept = [one for one in container.get("env") or () if "valueFrom" in one]
        container["env"] = [*kept, *form.environment()]
    if "idleMinutes" in body:
        notes.pop(annotations.IDLE_MINUTES, None)
        notes |= form.idle_time()
    if "configurations" in body:
        labels = notebook["metadata"].setdefault("labels", {})
        for name in [name for name, value in labels.items() if value == "true"]:
            del labels[name]
        labels |= form.configurations()
    placement = form.placement() if _PLACEMENT.keys() & body.keys() else {}
    for field, part in _PLACEMENT.items():
        if field in body:
            pod.pop(part, None)
            pod |= {part: placement[part]} if part in placement else {}
    claims: list[Json] = []
    if set(_VOLUMES) & body.keys():
        claims = _edit_volumes(notebook, pod, container, form, body)
    return notebook, claims


def _edit_resources(container: Object, body: Mapping[str, Any], defaults: FormDefaults) -> Json:
    """Resources that the form does not mention keep their values."""
    found = container.get("resources") or {}
    requests, limits = found.get("requests") or {}, found.get("limits") or {}
    current = {name: requests[name] for name in ("cpu", "memory") if name in requests}
    vendor = next((name for name in defaults.gpu_vendors() if name in limits), None)
    if vendor:
        current["gpus"] = {"num": limits[vendor], "vendor": vendor}
    for name in ("cpu", "memory"):
        if name not in body and name in limits:
            current[f"{name}Limit"] = limits[name]
    fixed = {name for name in current if defaults.is_read_only(name.removesuffix("Limit"))}
    given = {name: body[name] for name in _RESOURCES if name in body}
    return Form(
        {name: value for name, value in current.items() if name not in fixed} | given, defaults
    ).resources()


def _edit_volumes(
    notebook: Object, pod: Json, container: Json, form: Form, body: Mapping[str, Any]
) -> list[Json]:
    """Replace the volumes that forms know, and keep the others (secrets, configuration)."""
    volumes = Volumes(str(notebook["metadata"]["name"]), None)
    if {"workspace", "datavols"} & body.keys():
        for given in form.volumes():
            volumes.add(given)
        kept = {one["name"] for one in pod.get("volumes") or () if not _is_from_form(one)}
    else:
        kept = {one["name"] for one in pod.get("volumes") or () if one["name"] != SHARED_MEMORY}
    shared = any(one["name"] == SHARED_MEMORY for one in pod.get("volumes") or ())
    if form.choose("shm") if "shm" in body else shared:
        volumes.add_shared_memory()
    others = [one for one in pod.get("volumes") or () if one["name"] in kept]
    mounts = [one for one in container.get("volumeMounts") or () if one["name"] in kept]
    pod["volumes"] = [*others, *volumes.volumes]
    container["volumeMounts"] = [*mounts, *volumes.mounts]
    return volumes.claims


def _is_from_form(volume: Object) -> bool:
    return "persistentVolumeClaim" in volume or volume.get("name") == SHARED_MEMORY


def replace_yaml(
    backend: Backend, key: Key, text: str, defaults: FormDefaults, *, base: str | None = None
) -> None:
    """Replace labels, annotations and spec with those of a YAML text.

    `base`: the text before the user edited it. Conflict: the resource is not like that any more.
    """
    given = _parse_yaml(key, text)
    for attempt in range(_ATTEMPTS):
        current = backend.get(key)
        if base is not None and to_yaml(current) != base:
            raise Conflict(
                f"{key.name} was changed since you opened it",
                hint="load it again, then repeat your changes",
            )
        edited = _apply_yaml(current, given)
        check_edit(edited, current, defaults)
        try:
            backend.replace(edited)
            return
        except Conflict:
            # The time of its last use may have been noted just now.
            if base is None or attempt == _ATTEMPTS - 1:
                raise


def _apply_yaml(current: Object, given: Object) -> Json:
    edited = copy.deepcopy(dict(current))
    metadata = given["metadata"]
    edited["metadata"]["labels"] = metadata.get("labels") or {}
    own = {
        name: value
        for name, value in annotations_of(current).items()
        if name in annotations.WRITTEN_BY_SYSTEM
    }
    edited["metadata"]["annotations"] = (metadata.get("annotations") or {}) | own
    edited["spec"] = given["spec"]
    if metadata.get("resourceVersion"):
        edited["metadata"]["resourceVersion"] = str(metadata["resourceVersion"])
    return edited


def _parse_yaml(key: Key, text: str) -> Json:
    if len(text) > _MAX_YAML:
        raise UsageError("the YAML is larger than 1 MiB")
    documents = load_documents(text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UsageError("the YAML must be one document")
    found: Json = documents[0]
    metadata = found.get("metadata")
    same = (found.get("kind"), dig(found, "metadata", "name")) == (key.kind, key.name)
    if not isinstance(metadata, dict) or not same:
        raise UsageError("kind and metadata.name cannot be changed", hint="create another one")
    if metadata.get("namespace", key.namespace) != key.namespace:
        raise UsageError("metadata.namespace cannot be changed", hint="create another one")
    for field in ("labels", "annotations"):
        texts = metadata.get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(v, str) for v in texts.values()):
            raise UsageError(f"metadata.{field} must be names and texts")
    if not isinstance(found.get("spec"), dict):
        raise UsageError("spec is missing")
    return found
