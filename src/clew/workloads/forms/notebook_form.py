"""Turn a filled-in notebook form into a Notebook and the volumes to create for it.

The fields are those of Kubeflow's form, plus `environment` (names and values) and `idleMinutes`.
The administrator's configuration is enforced: a read-only field cannot be changed, and only listed
images are accepted unless custom ones are allowed. A field that is missing has the configured
value; only a missing `workspace` means that there is none, as in Kubeflow.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from clew.errors import UsageError
from clew.kube.objects import Json, Object
from clew.kube.resources.name_check import check_name
from clew.workloads import annotations
from clew.workloads.forms.notebook_volumes import Volumes
from clew.workloads.forms.quantities import parse_positive
from clew.workloads.forms.spawner_config import IMAGE_FIELDS, FormDefaults

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:@]{0,511}")
_LABEL = re.compile(r"([a-z0-9.\-]{1,253}/)?[A-Za-z0-9]([\w.\-]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][\w.\-]{0,255}", re.ASCII)
_MAX_VALUE = 32 << 10
"""Characters of a variable."""
_MAX_ITEMS = 100
_MAX_GPUS = 1024


@dataclass(frozen=True)
class NotebookRequest:
    """The result of a form: a Notebook, and the volumes to create first."""

    notebook: Json
    claims: tuple[Json, ...]
    """The volumes to create first."""


def build_notebook(
    body: Mapping[str, Any],
    defaults: FormDefaults,
    *,
    namespace: str,
    user: str,
    service_account: str | None = None,
    request: str | None = None,
) -> NotebookRequest:
    """`request`: the key of an idempotent request."""
    name = check_resource_name("Notebook", body.get("name"))
    form = Form(body, defaults)
    server_type = form.server_type()
    volumes = Volumes(name, request)
    for given in form.volumes():
        volumes.add(given)
    if form.choose("shm"):
        volumes.add_shared_memory()
    container = {
        "name": name,
        "image": form.image(server_type),
        "imagePullPolicy": form.pull_policy(),
        "resources": form.resources(),
        "env": form.environment(),
        "volumeMounts": volumes.mounts,
    }
    pod: Json = {"containers": [container], "volumes": volumes.volumes, **form.placement()}
    if service_account:
        pod["serviceAccountName"] = service_account
    notebook: Json = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"app": name, **form.configurations()},
            "annotations": {
                **_server_annotations(server_type, namespace, name),
                annotations.CREATOR: user,
                **form.idle_time(),
                **({annotations.REQUEST: request} if request else {}),
            },
        },
        "spec": {"template": {"spec": pod}},
    }
    claims = [claim | {"metadata": {**claim["metadata"], "namespace": namespace}}
              for claim in volumes.claims]  # fmt: skip
    return NotebookRequest(notebook, tuple(claims))


def check_resource_name(kind: str, name: object) -> str:
    if not isinstance(name, str) or not name:
        raise UsageError("the name is missing", hint="choose small letters, digits and dashes")
    if wrong := check_name(kind, name):
        raise UsageError(wrong, hint="choose another name, such as my-notebook")
    return name


class Form:
    """The values of a form, with the administrator's rules applied."""

    def __init__(self, body: Mapping[str, Any], defaults: FormDefaults) -> None:
        self._body = body
        self._defaults = defaults

    def choose(self, field: str, config: str = "") -> Any:
        """The value of a field: the user's, unless the field is read-only or missing."""
        config = config or field
        configured = self._defaults.value(config)
        if self._defaults.is_read_only(config):
            if field in self._body and self._body[field] != configured:
                raise _fixed(field)
            return configured
        return self._body.get(field, configured)

    def server_type(self) -> str:
        found = self._body.get("serverType", "jupyter")
        if not isinstance(found, str) or found not in IMAGE_FIELDS:
            raise UsageError(f"serverType must be one of {', '.join(IMAGE_FIELDS)}")
        return found

    def image(self, server_type: str) -> str:
        config = IMAGE_FIELDS[server_type]
        custom = self._body.get("customImage")
        if custom and self._body.get("customImageCheck", True):
            if self._defaults.is_read_only(config):
                raise _fixed("image")
            image = custom
        else:
            field = config if config in self._body else "image"
            image = self.choose(field, config)
        image = image.strip() if isinstance(image, str) else ""
        if not _IMAGE.fullmatch(image):
            raise UsageError("the image is missing, or its name is not valid")
        allowed = self._defaults.images(server_type)
        if image not in allowed and not self._defaults.allows_custom_images:
            raise UsageError(
                f"the administrator does not allow the image {image}",
                hint=f"choose one of: {', '.join(dict.fromkeys(allowed))}",
            )
        return image

    def pull_policy(self) -> str:
        found = self.choose("imagePullPolicy") or "IfNotPresent"
        if found not in _PULL_POLICIES:
            raise UsageError(f"imagePullPolicy must be one of {', '.join(_PULL_POLICIES)}")
        return str(found)

    def resources(self) -> Json:
        requests: Json = {}
        limits: Json = {}
        for name in ("cpu", "memory"):
            text = self.choose(name)
            if text in (None, ""):
                continue
            request = parse_positive(text, name)
            requests[name] = str(text).strip()
            limit = self._limit(name, request)
            if limit:
                limits[name] = limit
        limits |= self._gpus()
        return {"requests": requests, **({"limits": limits} if limits else {})}

    def _limit(self, name: str, request: Any) -> str | None:
        text = self._body.get(f"{name}Limit")
        if text not in (None, ""):
            if self._defaults.is_read_only(name):
                raise _fixed(f"{name}Limit")
            if parse_positive(text, f"{name}Limit").value < request.value:
                raise UsageError(f"{name}Limit is less than {name}", hint="raise the limit")
            return str(text).strip()
        factor = self._defaults.limit_factor(name)
        if factor is None:
            return None
        limit = request.times(Decimal(str(factor)))
        return str(max(limit, request, key=lambda one: one.value))

    def _gpus(self) -> Json:
        found = self.choose("gpus") or {}
        if not isinstance(found, Mapping):
            raise UsageError("gpus must have the keys num and vendor")
        number = found.get("num", "none")
        if number in ("none", "", None, 0, "0"):
            return {}
        vendor = found.get("vendor")
        vendors = self._defaults.gpu_vendors()
        if vendor not in vendors:
            raise UsageError(
                f"there is no GPU of the vendor {str(vendor)[:80]!r}",
                hint=f"choose one of: {', '.join(vendors) or 'none'}",
            )
        if not re.fullmatch(r"\d{1,4}", str(number)) or int(number) > _MAX_GPUS:
            raise UsageError("gpus.num must be a number of GPUs, or none")
        return {str(vendor): str(int(number))}

    def environment(self) -> list[Json]:
        """Variables, sorted by name; as JSON text, too, which older clients send."""
        found = self.choose("environment") or {}
        if isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError as error:
                raise UsageError("environment is not valid JSON") from error
        if not isinstance(found, Mapping) or len(found) > _MAX_ITEMS:
            raise UsageError("environment must be names and values")
        for name, value in found.items():
            if not _VARIABLE.fullmatch(name):
                raise UsageError(f"{name[:80]!r} cannot be the name of a variable")
            if not isinstance(value, str) or "\0" in value or len(value) > _MAX_VALUE:
                raise UsageError(f"the value of {name[:80]} must be a text")
        return [{"name": name, "value": found[name]} for name in sorted(found)]

    def volumes(self) -> Sequence[Object]:
        """The workspace and the data volumes."""
        workspace = None
        if "workspace" in self._body or self._defaults.is_read_only("workspaceVolume"):
            workspace = self.choose("workspace", "workspaceVolume")
        data = self.choose("datavols", "dataVolumes") or []
        if not isinstance(data, list) or len(data) > _MAX_ITEMS:
            raise UsageError("datavols must be a list of volumes")
        return [*([workspace] if workspace else []), *data]

    def configurations(self) -> dict[str, str]:
        """The labels that select configurations (PodDefaults)."""
        found = self.choose("configurations") or []
        if not isinstance(found, list) or len(found) > _MAX_ITEMS:
            raise UsageError("configurations must be a list of labels")
        for label in found:
            if not isinstance(label, str) or not _LABEL.fullmatch(label):
                raise UsageError(f"{str(label)[:80]!r} is not a label")
        return dict.fromkeys(found, "true")

    def placement(self) -> Json:
        """Its placement: the chosen affinity and toleration group."""
        affinity = self._option("affinityConfig", "configKey")
        tolerations = self._option("tolerationGroup", "groupKey")
        return {
            **({"affinity": affinity.get("affinity") or {}} if affinity else {}),
            **({"tolerations": tolerations.get("tolerations") or []} if tolerations else {}),
        }

    def _option(self, field: str, key_field: str) -> Object | None:
        key = self.choose(field)
        if key in (None, "", "none"):
            return None
        found = self._defaults.option(field, key_field, str(key))
        if found is None:
            raise UsageError(f"there is no {field} {str(key)[:80]!r}")
        return found

    def idle_time(self) -> dict[str, str]:
        """After how many idle minutes it is stopped; `never`; null: the usual limit."""
        found = self._body.get("idleMinutes")
        if found in (None, ""):
            return {}
        if found == "never":
            return {annotations.IDLE_MINUTES: "never"}
        minutes = parse_positive(found, "idleMinutes")
        return {annotations.IDLE_MINUTES: f"{minutes.value.normalize():f}"}


def _fixed(field: str) -> UsageError:
    return UsageError(
        f"{field} is set by the administrator and cannot be changed",
        hint=f"leave {field} out of the form",
    )


def _server_annotations(server_type: str, namespace: str, name: str) -> dict[str, str]:
    found = {annotations.SERVER_TYPE: server_type}
    if server_type != "jupyter":
        found[annotations.REWRITE] = "/"
    if server_type == "group-two":
        path = f"/notebook/{namespace}/{name}/"
        found[annotations.HEADERS] = json.dumps({"X-RStudio-Root-Path": path})
    return found
