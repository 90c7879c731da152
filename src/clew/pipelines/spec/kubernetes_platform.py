"""Parse the Kubernetes document of a pipeline: the platform settings of each executor.

What only a cluster can act on (where a Pod is placed, how it is labelled, where its image comes
from) is checked by `cluster_settings` and kept: `pods` applies it, and on this machine it is
recorded and has no effect. The rest becomes plain values: variables and volumes, which
`platform_mapping` finds on this machine, and time limits. Everything else is refused.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from clew.pipelines.spec import cluster_settings, ir
from clew.pipelines.spec.cluster_settings import list_parts
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.task_parser import parse_parameter

_CLAIM_IMAGES = ("argostub/createpvc", "argostub/deletepvc")
LOCAL_FIELDS = ("metadata.name", "metadata.uid", "metadata.namespace", "spec.nodeName")
"""Fields of a Pod that have a value on this machine, too."""
_POD_FIELDS = (
    *LOCAL_FIELDS,
    *("spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP"),
    "status.podIPs",
)
_VOLUME_SETTINGS = (
    *("medium", "sizeLimit", "size", "accessModes", "defaultStorageClass", "storageClassName"),
    "metadata",
)
"""Settings of empty directories that only a cluster applies."""
_VOLUME_LISTS = {
    "secretAsVolume": ("secret", "secretName"),
    "configMapAsVolume": ("configmap", "configMapName"),
    "pvcMount": ("pvc", "pvcName"),
}
USER_WARNING = "tasks run as your user, not as the users that they name"


def parse_platform(part: Part, warnings: list[str]) -> ir.Platform:
    """The platform settings of one executor."""
    part.allow_only(
        *cluster_settings.NAMES, *_VOLUME_LISTS, "secretAsEnv", "configMapAsEnv", "fieldPathAsEnv",
        "emptyDirMounts", "genericEphemeralVolume", "activeDeadlineSeconds",
    )  # fmt: skip
    if part.get("securityContext"):
        warnings.append(USER_WARNING)
    names = _NameReader()
    pod = {
        name: _fill_in_inputs(part.get(name), f"{part.location}.{name}", names)
        for name in part.names()
        if name in cluster_settings.NAMES
    }
    cluster_settings.build_settings(Part(pod, part.location), _omit_inputs)
    return ir.Platform(
        env_vars=tuple(_parse_env(part, names)),
        mounts=tuple(_parse_mounts(part, names)),
        fields=dict(_parse_fields(part)),
        deadline=parse_seconds(part, "activeDeadlineSeconds"),
        pod=pod,
        inputs=names.inputs,
        location=part.location,
    )


def parse_seconds(part: Part, name: str) -> int | None:
    """A number of seconds; None for 0."""
    found = str(part.get(name) or "0")
    if not found.isdigit():
        raise part.error(name, f"{found} is not a number of seconds")
    return int(found) or None


def parse_volume_claim(container: Part) -> ir.VolumeClaim | None:
    """The volume task that two special image names stand for."""
    if container.get("image") not in _CLAIM_IMAGES:
        return None
    container.allow_only("image", "env")
    return ir.VolumeClaim(delete=container.get("image") == _CLAIM_IMAGES[1])


def parse_pipeline_config(part: Part) -> tuple[bool, Mapping[str, Any], int | None]:
    """Whether the tasks share a workspace, its settings, and the time limit of a run."""
    part.allow_only(
        "workspace", "activeDeadlineSeconds", "resourceTtlOnCompletion", "resourceTtlOnSuccess",
        "resourceTtlOnFailure", "resourceTtl",
    )  # fmt: skip
    workspace = part.part("workspace")
    workspace.allow_only("size", "kubernetes")
    settings = {name: workspace.get(name) for name in workspace.names()}
    return "workspace" in part, settings, parse_seconds(part, "activeDeadlineSeconds")


def find_workspace_uses(value: Any, place: str) -> Iterator[str]:
    """The locations where a pipeline uses the workspace."""
    if isinstance(value, dict):
        for name, one in value.items():
            inside = f"{place}.{name}" if place else str(name)
            if name == "downloadToWorkspace" and one:
                yield inside
            yield from find_workspace_uses(one, inside)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from find_workspace_uses(one, f"{place}[{number}]")
    elif isinstance(value, str) and "{{$.workspace_path}}" in value:
        yield place


def add_platform_inputs(
    component: ir.Component, components: dict[str, ir.Component]
) -> ir.Component:
    """Add the inputs that platform settings use to the tasks of a component."""
    dag = component.body
    if not isinstance(dag, ir.Dag):
        return component
    tasks = {name: _add_task_inputs(task, components) for name, task in dag.tasks.items()}
    return replace(component, body=replace(dag, tasks=tasks))


def _add_task_inputs(task: ir.Task, components: dict[str, ir.Component]) -> ir.Task:
    more = components[task.component].platform.inputs if task.component in components else {}
    producers = {one.source.task for one in more.values() if isinstance(one.source, ir.FromTask)}
    return replace(task, parameters={**task.parameters, **more}, after=task.after | producers)


class _NameReader:
    """Reads names that are texts, or become texts when the inputs of a task are known."""

    def __init__(self) -> None:
        self.inputs: dict[str, ir.Input] = {}

    def read(self, part: Part, field: str) -> str:
        if f"{field}Parameter" in part:
            found = parse_parameter(part.part(f"{field}Parameter"))
        elif field in part or "constant" in part:
            found = ir.Input(ir.Constant(part.string(field if field in part else "constant")))
        else:  # older SDKs name a volume this way
            ways = ("taskOutputParameter", "componentInputParameter")
            found = parse_parameter(
                Part({w: part.get(w) for w in ways if w in part}, part.location)
            )
        if isinstance(found.source, ir.Constant) and isinstance(found.source.value, str):
            return found.source.value
        return self._add(found)

    def read_input(self, part: Part) -> Any:
        """A constant, or the placeholder of an input of any type."""
        found = parse_parameter(part)
        if isinstance(found.source, ir.Constant) and found.key is None:
            return found.source.value
        return self._add(found)

    def _add(self, found: ir.Input) -> str:
        name = f"platform--{len(self.inputs)}"
        self.inputs[name] = found
        return f"{{{{$.inputs.parameters['{name}']}}}}"


def _fill_in_inputs(value: Any, place: str, names: _NameReader) -> Any:
    """The settings, with a placeholder for each input of the task."""
    if isinstance(value, list):
        return [
            _fill_in_inputs(one, f"{place}[{number}]", names) for number, one in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    return {
        name: names.read_input(Part(one, f"{place}.{name}"))
        if name in cluster_settings.INPUTS
        else _fill_in_inputs(one, f"{place}.{name}", names)
        for name, one in value.items()
    }


def _omit_inputs(value: Any) -> Any:
    """None for what is known only when the task starts."""
    return None if "{{$" in json.dumps(value) else value


def _parse_env(part: Part, names: _NameReader) -> Iterator[ir.EnvVar]:
    for list_name, kind, field, key in (
        ("secretAsEnv", "secret", "secretName", "secretKey"),
        ("configMapAsEnv", "configmap", "configMapName", "configMapKey"),
    ):
        for one in list_parts(part, list_name):
            one.allow_only(field, f"{field}Parameter", "keyToEnv", "optional")
            name = names.read(one, field)
            for pair in list_parts(one, "keyToEnv"):
                pair.allow_only(key, "envVar")
                yield ir.EnvVar(
                    variable=pair.string("envVar"),
                    kind=kind,
                    name=name,
                    key=pair.string(key),
                    optional=bool(one.get("optional")),
                    location=one.location,
                )


def _parse_mounts(part: Part, names: _NameReader) -> Iterator[ir.Mount]:
    for list_name, (kind, field) in _VOLUME_LISTS.items():
        for one in list_parts(part, list_name):
            one.allow_only(
                field, f"{field}Parameter", "mountPath", "optional", "subPath", "constant",
                "taskOutputParameter", "componentInputParameter",
            )  # fmt: skip
            yield ir.Mount(
                path=_parse_mount_path(one),
                kind=kind,
                name=names.read(one, field),
                sub_path=_parse_sub_path(one),
                optional=bool(one.get("optional")),
                location=one.location,
            )
    for list_name in ("emptyDirMounts", "genericEphemeralVolume"):
        for one in list_parts(part, list_name):
            one.allow_only(
                "volumeName", "mountPath", "medium", "sizeLimit", "size", "accessModes",
                "defaultStorageClass", "storageClassName", "metadata",
            )  # fmt: skip
            cluster_settings.check_volume(one)
            yield ir.Mount(
                _parse_mount_path(one),
                "empty",
                one.string("volumeName"),
                location=one.location,
                settings={name: one.get(name) for name in one.names() if name in _VOLUME_SETTINGS},
            )


def _parse_mount_path(part: Part) -> str:
    path = part.string("mountPath").rstrip("/")
    if not path.startswith("/") or ".." in path.split("/"):
        raise part.error("mountPath", f"{path} is not an absolute path")
    return path


def _parse_sub_path(part: Part) -> str:
    path = str(part.get("subPath") or "")
    if path.startswith("/") or ".." in path.split("/"):
        raise part.error("subPath", f"{path} leads out of the volume")
    return path


def _parse_fields(part: Part) -> Iterator[tuple[str, str]]:
    labels = part.part("podMetadata")
    for one in list_parts(part, "fieldPathAsEnv"):
        one.allow_only("name", "fieldPath")
        path = one.string("fieldPath")
        literal = _find_label(labels, path)
        if path not in _POD_FIELDS and literal is None:
            known = ", ".join(_POD_FIELDS)
            raise one.error("fieldPath", f"{path} is not available, only labels and {known}")
        yield one.string("name"), path if literal is None else f"={literal}"


def _find_label(labels: Part, path: str) -> Any:
    for name in ("labels", "annotations"):
        for key, value in (labels.get(name) or {}).items():
            if path in (f"metadata.{name}['{key}']", f'metadata.{name}["{key}"]'):
                return value
    return None


def reject_unknown_executors(executors: Part, labels: set[str]) -> None:
    """Refuse settings of an executor that does not exist."""
    for name in executors.names():
        if name not in labels:
            raise InvalidPipeline(
                f"{executors.location}.{name}: no such executor", hint="recompile it"
            )
