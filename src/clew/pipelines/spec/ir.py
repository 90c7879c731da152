"""The types of a compiled pipeline: components, tasks, and the sources of their inputs."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from clew.pipelines.spec.conditions import Condition


class Parameter(Struct, frozen=True):
    """A declared input or output parameter."""

    type: str
    optional: bool = False
    default: Any = None
    literals: tuple[Any, ...] = ()
    """If not empty, the only allowed values."""


class ArtifactSlot(Struct, frozen=True):
    """A declared input or output artifact."""

    title: str
    version: str
    many: bool = False
    optional: bool = False

    @property
    def type(self) -> dict[str, str]:
        return {"schemaTitle": self.title, "schemaVersion": self.version}


class Slots(Struct, frozen=True):
    """The declared inputs, or outputs, of a component."""

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    artifacts: Mapping[str, ArtifactSlot] = field(default_factory=dict)


class Constant(Struct, frozen=True):
    value: Any
    """Its strings may have placeholders of inputs of the same task."""


class FromInput(Struct, frozen=True):
    """An input of the enclosing pipeline."""

    name: str


class FromTask(Struct, frozen=True):
    task: str
    output: str


class FinalStatus(Struct, frozen=True):
    """The final status of a task."""

    task: str


Source = Constant | FromInput | FromTask | FinalStatus


class Input(Struct, frozen=True):
    source: Source
    key: str | None = None
    """Take this member of the value, a structure or its JSON text."""


class Loop(Struct, frozen=True):
    """One iteration for each item."""

    item: str
    """The input of an iteration that holds its item."""
    items: tuple[Any, ...] | None = None
    source: str | None = None
    """If `items` is None: the input that holds them, a list or its JSON text."""
    artifacts: bool = False
    """The items are artifacts."""
    limit: int = 0
    """How many iterations may run in parallel; 0: all of them."""


class Retry(Struct, frozen=True):
    """The retry policy of a task; times in seconds."""

    max_retries: int = 0
    backoff: float = 0.0
    factor: float = 2.0
    max_backoff: float = 3600.0

    def delay_after(self, failures: int) -> float:
        """Seconds to wait after so many failures."""
        if not self.backoff:
            return 0.0
        exponent = min(failures - 1, 64)  # a float has no larger power
        return float(min(self.max_backoff, self.backoff * self.factor**exponent))


class Task(Struct, frozen=True):
    name: str
    component: str
    parameters: Mapping[str, Input]
    artifacts: Mapping[str, Input]
    after: frozenset[str]
    """The tasks it depends on: the sources of its inputs, and explicit dependencies."""
    condition: Condition | None = None
    run_always: bool = False
    """Run even if dependencies failed or were skipped."""
    loop: Loop | None = None
    retry: Retry = Retry()
    reuse: bool = True
    """Whether an earlier result may be reused."""
    cache_key: str = ""
    """The author's own key for reuse."""


class Dag(Struct, frozen=True, dict=True):
    """The tasks of a pipeline. An output may have several sources, of which one will exist."""

    tasks: Mapping[str, Task]
    parameters: Mapping[str, tuple[FromTask, ...]] = field(default_factory=dict)
    artifacts: Mapping[str, tuple[FromTask, ...]] = field(default_factory=dict)

    @property
    def has_outputs(self) -> bool:
        return bool(self.parameters or self.artifacts)

    @cached_property
    def dependents(self) -> Mapping[str, list[str]]:
        """The tasks that wait for each task."""
        found: dict[str, list[str]] = {}
        for name, task in self.tasks.items():
            for before in task.after:
                found.setdefault(before, []).append(name)
        return found


class PythonFunction(Struct, frozen=True):
    """A lightweight component: a function, and the source of its module."""

    source: str
    function: str
    environment: Mapping[str, str]
    installs: tuple[tuple[str, ...], ...] = ()
    """The arguments of each call of `pip install` before it runs."""
    image: str = ""
    """It may have placeholders."""


class Command(Struct, frozen=True):
    """A container component. Its texts may have placeholders."""

    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    location: str
    """Its place in the file."""


class Importer(Struct, frozen=True):
    """Imports an artifact that exists already."""

    uri: Input
    slot: ArtifactSlot
    metadata: Mapping[str, Any]
    to_workspace: bool = False
    """Copy it to the directory that the tasks of a run share."""


class VolumeClaim(Struct, frozen=True):
    """Create or delete a volume; on a cluster, too, no container runs for it."""

    delete: bool


class Resources(Struct, frozen=True):
    """The resources of a task: quantities, or texts with placeholders."""

    cpu: Any = None
    """The request or, without one, the limit; `memory` too."""
    memory: Any = None
    accelerators: Any = None
    """How many."""
    accelerator_type: Any = None
    """The name of the resource on a cluster."""
    requests: Mapping[str, Any] = field(default_factory=dict)
    """As the Pod of the task has them: by the name of the resource."""
    limits: Mapping[str, Any] = field(default_factory=dict)


class EnvVar(Struct, frozen=True):
    """A variable with the value of a key of a Secret or ConfigMap."""

    variable: str
    kind: str
    name: str
    """The name of the Secret or ConfigMap; it may have placeholders."""
    key: str
    optional: bool
    location: str


class Mount(Struct, frozen=True):
    """A Secret, ConfigMap, PersistentVolumeClaim or empty directory mounted at a path."""

    path: str
    kind: str
    name: str
    sub_path: str = ""
    optional: bool = False
    location: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of an empty directory: what only a cluster applies, by the names of the document."""


class Platform(Struct, frozen=True):
    """The Kubernetes settings of a task."""

    env_vars: tuple[EnvVar, ...] = ()
    mounts: tuple[Mount, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """Variables with fields of the Pod: the path of the field or, after `=`, its value."""
    deadline: int | None = None
    pod: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the Pod, which have no effect on this machine. Their texts may have
    placeholders."""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    """Further inputs of the task, which the names above use."""
    location: str = ""


class Component(Struct, frozen=True):
    name: str
    inputs: Slots
    outputs: Slots
    body: Dag | PythonFunction | Command | Importer | VolumeClaim
    resources: Resources = Resources()
    platform: Platform = Platform()


class Pipeline(Struct, frozen=True):
    name: str
    root: Component
    components: Mapping[str, Component]
    warnings: tuple[str, ...] = ()
    """How a run here differs from one on a cluster."""
    workspace: bool = False
    """Whether its tasks share a directory."""
    workspace_settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the volume that this is on a cluster."""
    deadline: int | None = None
    """Time limit of a run, in seconds."""
