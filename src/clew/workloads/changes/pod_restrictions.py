"""Restrictions on the Pod of a notebook or viewer, for forms and for YAML.

The administrator fixes fields of the form and images. And no Pod may reach into the machine that it
runs on: the server creates it with its own rights, which are more than those of most users. What is
there already stays, since a user with more rights has put it there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clew.errors import NotAllowed, UsageError
from clew.kube.objects import Object, annotations_of, dig, labels_of
from clew.workloads import annotations
from clew.workloads.forms.notebook_volumes import PLACEHOLDER
from clew.workloads.forms.spawner_config import IMAGE_FIELDS, FormDefaults

_PODS = {"Notebook": ("spec", "template", "spec"), "PVCViewer": ("spec", "podSpec")}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    )
)  # fmt: skip
"""Those that the Pod Security Standard `baseline` lets a container add."""


def check_edit(edited: Object, current: Object, defaults: FormDefaults) -> None:
    """Check that a new specification changes nothing that the administrator has fixed, and reaches
    no further into the machine than the current one."""
    check_host_access(edited, current, defaults)
    _check_images(edited, current, defaults)
    if edited.get("kind") != "Notebook":
        return
    before, after = _fixed_parts(current), _fixed_parts(edited)
    for name in before:
        if defaults.is_read_only(name) and before[name] != after[name]:
            raise UsageError(f"{name} is set by the administrator and cannot be changed")


def check_host_access(edited: Object, current: Object, defaults: FormDefaults) -> None:
    """`current` is empty if there is none yet."""
    name = str(dig(edited, "metadata", "name"))
    allowed = {*_host_access(_pod_of(current)), *_configured_host_access(defaults, name)}
    new = set(_host_access(_pod_of(edited))) - allowed
    if new:
        raise NotAllowed(
            f"{min(new)[:200]} would give access to the machine that it runs on",
            hint="leave it out, or let an administrator of the cluster add it with kubectl",
        )


def _host_access(pod: Any) -> Iterator[str]:
    """What the Pod Security Standard `baseline` forbids, as far as it reaches the machine."""
    yield from (name for name in _HOST_NAMESPACES if dig(pod, name))
    if dig(pod, "securityContext", "windowsOptions", "hostProcess"):
        yield "a host process"
    for volume in _mappings(dig(pod, "volumes")):
        if "hostPath" in volume:
            yield _host_path(dig(volume, "hostPath", "path"))
    for container in _containers(pod):
        context, of = container.get("securityContext"), f"of the container {container.get('name')}"
        if dig(context, "privileged"):
            yield f"privileged {of}"
        if dig(context, "procMount") not in (None, "Default"):
            yield f"procMount {of}"
        if dig(context, "windowsOptions", "hostProcess"):
            yield f"a host process {of}"
        added = dig(context, "capabilities", "add")
        for capability in added if isinstance(added, list) else ():
            if capability not in _CAPABILITIES:
                yield f"the capability {capability} {of}"
        for port in _mappings(container.get("ports")):
            if port.get("hostPort"):
                yield f"the hostPort {port['hostPort']} {of}"


def _configured_host_access(defaults: FormDefaults, name: str) -> Iterator[str]:
    """The directories of machines that the administrator offers as volumes."""
    for field in ("workspaceVolume", "dataVolumes"):
        value = defaults.value(field)
        for volume in _mappings(value if isinstance(value, list) else [value]):
            path = dig(volume, "existingSource", "hostPath", "path")
            if isinstance(path, str):
                yield _host_path(path.replace(PLACEHOLDER, name))


def _host_path(path: Any) -> str:
    return f"the hostPath {path}"


def _check_images(edited: Object, current: Object, defaults: FormDefaults) -> None:
    server_type = annotations_of(current).get(annotations.SERVER_TYPE, "jupyter")
    server_type = server_type if server_type in IMAGE_FIELDS else "jupyter"
    fixed = defaults.is_read_only(IMAGE_FIELDS[server_type])
    if defaults.allows_custom_images and not fixed:
        return
    allowed = set() if fixed else {*defaults.images(server_type)}
    new = set(_images(_pod_of(edited))) - set(_images(_pod_of(current))) - allowed
    if new:
        raise UsageError(
            f"the administrator does not allow the image {min(new)[:500]}",
            hint=f"choose one of: {', '.join(sorted(allowed)) or 'the present one'}",
        )


def _images(pod: Any) -> Iterator[str]:
    for container in _containers(pod):
        yield str(container.get("image") or "")
    for volume in _mappings(dig(pod, "volumes")):
        if "image" in volume:
            yield str(dig(volume, "image", "reference"))


def _fixed_parts(notebook: Object) -> dict[str, Any]:
    """The parts of a notebook that each field of the form sets, of all containers: a second one
    must not have what the first one may not."""
    pod = _pod_of(notebook)
    containers = list(_containers(pod))
    resources = [dig(pod, "resources"), *(one.get("resources") for one in containers)]
    parts = [dig(found, part) for found in resources for part in ("requests", "limits")]

    def of(name: str) -> list[Any]:
        return [dig(part, name) for part in parts]

    def each(*names: str) -> list[Any]:
        return [[one.get(name) for name in names] for one in containers]

    extended = [
        {name: value for name, value in part.items() if "/" in str(name)}
        for part in parts
        if isinstance(part, Mapping)
    ]
    claimed = [dig(found, "claims") for found in resources]
    volumes = [dig(pod, "volumes"), each("volumeMounts", "volumeDevices")]
    return {
        "imagePullPolicy": each("imagePullPolicy"),
        "cpu": of("cpu"),
        "memory": of("memory"),
        "gpus": [extended, claimed, dig(pod, "resourceClaims")],
        "affinityConfig": [dig(pod, name) for name in ("affinity", "nodeSelector", "nodeName")],
        "tolerationGroup": dig(pod, "tolerations"),
        "workspaceVolume": volumes,
        "dataVolumes": volumes,
        "shm": [one for one in _mappings(dig(pod, "volumes")) if "emptyDir" in one],
        "configurations": [labels_of(notebook), dig(notebook, "spec", "template", "metadata")],
        "environment": each("env", "envFrom"),
    }


def _pod_of(resource: Object) -> Any:
    return dig(resource, *_PODS[resource["kind"]]) if resource.get("kind") in _PODS else None


def _containers(pod: Any) -> Iterator[Mapping[str, Any]]:
    for field in _CONTAINERS:
        yield from _mappings(dig(pod, field))


def _mappings(found: Any) -> Iterable[Mapping[str, Any]]:
    """The mappings in a list; the back end refuses what is malformed."""
    return (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else ()
