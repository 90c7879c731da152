"""The Pod of a task, from its component and its platform settings. Pure.

`kube.tasks.manifest` turns it into a manifest; names that Kubernetes gives the fields are kept.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from clew.kube.quantities import InvalidQuantity, parse_quantity
from clew.kube.tasks.task_pod import (
    ClaimVolume,
    ConfigMapVolume,
    EmptyVolume,
    EphemeralVolume,
    FieldVariable,
    Helper,
    KeyVariable,
    Mount,
    SecretVolume,
    TaskPod,
    Volume,
    pod_name,
)
from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.run_state import Node
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import SECRET
from clew.pipelines.spec import ir
from clew.pipelines.spec.cluster_settings import ClusterSettings, build_settings
from clew.pipelines.spec.document_part import Part
from clew.pipelines.tasks.attempt_factory import build_command, build_environment, fill_defaults
from clew.pipelines.tasks.worker_pool import SDK_VARIABLES
from clew.placement.request import parse_request

WORKSPACE = "/kfp-workspace"
_GPU = "nvidia.com/gpu"
_MOVER = ("python3", "-P", "-m", "clew.pipelines.pods.data_mover")
_MOVER_REQUESTS = {"cpu": "10m", "memory": "64Mi"}
_MOVER_LIMITS = {"memory": "1Gi"}
"""Files are streamed; only parameters are in memory as a whole."""
_MAX_WORD = 128 << 10
"""Bytes: Linux has no longer argument."""
_MAX_COMMAND = 512 << 10
"""Bytes: the API server takes no much larger Pod."""
_DEFAULT_SIZE = "5Gi"


class TaskPlace(Struct, frozen=True, kw_only=True):
    """Where one attempt of a task runs, and where its files are."""

    namespace: str
    run: str
    attempt: int
    """Its number among all Pods of the task."""
    url: str
    """The place of its files in the store."""
    helper_image: str
    scheduler: str = ""
    """See `ClusterOptions`."""
    workspace: str = ""
    """The claim that the tasks of the run share."""


def build_pod(
    node: Node, place: TaskPlace, executor_input: Mapping[str, Any], facts: Mapping[str, str]
) -> TaskPod:
    """Raises BadInput if a setting has no value, InvalidPipeline if an input makes one invalid."""
    body, platform = node.component.body, node.component.platform
    assert isinstance(body, ir.Command | ir.PythonFunction)
    settings = build_settings(
        Part(dict(platform.pod), platform.location),
        lambda value: fill_placeholders(value, node.named_inputs, node, facts),
    )
    variables = build_environment(body.environment, node, facts)
    for name, path in platform.fields.items():
        if path.startswith("="):
            variables = {**variables, name: path[1:]}
    if isinstance(body, ir.PythonFunction):
        command: list[str] = [
            "python3",
            f"{task_documents.TASK}/component_main.py",
            task_documents.TASK,
        ]
        arguments: list[str] = []
        variables = {**SDK_VARIABLES, **variables}
    else:
        command = build_command(body.command, node, executor_input, facts)
        arguments = build_command(body.arguments, node, executor_input, facts)
        _check_length([*command, *arguments])
    requests, limits = _resources(node, facts)
    return TaskPod(
        name=pod_name(place.run, node.path, place.attempt),
        namespace=place.namespace,
        run=place.run,
        task=node.path,
        helper=Helper(
            image=place.helper_image,
            command=_MOVER,
            env={task_documents.VARIABLE: place.url},
            secret=SECRET,
            requests=_MOVER_REQUESTS,
            limits=_MOVER_LIMITS,
        ),
        image=image_of(node, facts),
        command=tuple(command),
        args=tuple(arguments),
        labels=settings.labels,
        annotations=settings.annotations,
        env=variables,
        key_variables=tuple(_key_variables(node, facts)),
        field_variables=tuple(
            FieldVariable(name, path)
            for name, path in platform.fields.items()
            if not path.startswith("=")
        ),
        requests=requests,
        limits=limits,
        mounts=tuple(_mounts(node, settings, place, facts)),
        pull_policy=settings.pull_policy,
        pull_secrets=settings.pull_secrets,
        run_as_user=settings.run_as_user,
        run_as_group=settings.run_as_group,
        run_as_non_root=settings.run_as_non_root,
        node_selector=settings.node_selector,
        tolerations=settings.tolerations,
        affinity=settings.affinity,
        scheduler=place.scheduler if parse_request(settings.labels, settings.annotations) else "",
        deadline=platform.deadline,
    )


def image_of(node: Node, facts: Mapping[str, str]) -> str:
    body = node.component.body
    assert isinstance(body, ir.Command | ir.PythonFunction)
    return str(fill_placeholders(body.image, fill_defaults(node), node, facts))


def _check_length(words: list[str]) -> None:
    sizes = [len(word.encode()) for word in words]
    if max(sizes, default=0) >= _MAX_WORD or sum(sizes) > _MAX_COMMAND:
        raise BadInput("its arguments are too long for a command line: pass a file instead")


def _resources(node: Node, facts: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    resources = node.component.resources

    def quantity(value: Any) -> str:
        found = fill_placeholders(value, fill_defaults(node), node, facts)
        if isinstance(found, float):  # the older fields are numbers: of cores, or of bytes
            found = f"{found:.0f}" if found.is_integer() else f"{found * 1000:.0f}m"
        try:
            return str(parse_quantity(found))
        except InvalidQuantity as error:
            raise BadInput(str(error)) from error

    requests = {name: quantity(value) for name, value in resources.requests.items()}
    limits = {name: quantity(value) for name, value in resources.limits.items()}
    if resources.accelerators is not None:
        kind = fill_placeholders(resources.accelerator_type, fill_defaults(node), node, facts)
        name = str(kind or _GPU)
        if "/" not in name:
            raise BadInput(
                f"its accelerator {name[:100]} is not a resource of Kubernetes, such as {_GPU}"
            )
        limits[name] = quantity(resources.accelerators)
    return requests, limits


def _resolve(one: ir.EnvVar | ir.Mount, node: Node, facts: Mapping[str, str]) -> str | None:
    """The resolved name; None if it is optional and its input has no value."""
    try:
        return str(fill_placeholders(one.name, node.named_inputs, node, facts))
    except BadInput:
        if one.optional:
            return None
        raise


def _key_variables(node: Node, facts: Mapping[str, str]) -> Iterator[KeyVariable]:
    for one in node.component.platform.env_vars:
        source = _resolve(one, node, facts)
        if source is not None:
            yield KeyVariable(
                one.variable,
                "secret" if one.kind == "secret" else "configmap",
                source,
                one.key,
                one.optional,
            )


def _mounts(
    node: Node, settings: ClusterSettings, place: TaskPlace, facts: Mapping[str, str]
) -> Iterator[Mount]:
    for one in node.component.platform.mounts:
        name = _resolve(one, node, facts)
        if name is not None:
            yield Mount(one.path, _volume(one, name), one.sub_path)
    if settings.shared_memory is not None:
        shared = EmptyVolume("shared memory", "Memory", settings.shared_memory)
        yield Mount("/dev/shm", shared)  # noqa: S108
    if place.workspace:
        yield Mount(WORKSPACE, ClaimVolume(place.workspace))


def _volume(one: ir.Mount, name: str) -> Volume:
    if one.kind == "secret":
        return SecretVolume(name, one.optional)
    if one.kind == "configmap":
        return ConfigMapVolume(name, one.optional)
    if one.kind == "pvc":
        return ClaimVolume(name)
    settings = one.settings
    if "accessModes" not in settings:
        return EmptyVolume(name, settings.get("medium") or "", settings.get("sizeLimit") or "")
    metadata = settings.get("metadata") or {}
    default = settings.get("defaultStorageClass")
    return EphemeralVolume(
        name,
        size=settings.get("size") or _DEFAULT_SIZE,
        access_modes=tuple(settings["accessModes"]),
        storage_class=None if default else settings.get("storageClassName") or None,
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
    )
