"""What a compiled pipeline says, as plain values: components, tasks, and where inputs come from."""

from __future__ import annotations

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
    """If there are any, it is one of them."""


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
    """What goes in, or comes out."""

    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    artifacts: Mapping[str, ArtifactSlot] = field(default_factory=dict)


class Constant(Struct, frozen=True):
    value: Any
    """Strings in it may hold placeholders of the same task's inputs."""


class FromInput(Struct, frozen=True):
    """An input of the pipeline that the task stands in."""

    name: str


class FromTask(Struct, frozen=True):
    task: str
    output: str


class FinalStatus(Struct, frozen=True):
    """How a task ended."""

    task: str


Source = Constant | FromInput | FromTask | FinalStatus


class Input(Struct, frozen=True):
    source: Source
    key: str | None = None
    """The member to take of a value that is a structure, or the JSON text of one."""


class Loop(Struct, frozen=True):
    """One iteration for each item."""

    item: str
    """The input that an iteration finds its item under."""
    items: tuple[Any, ...] | None = None
    source: str | None = None
    """Where `items` is None: the input, a list or the JSON text of one, that holds them."""
    artifacts: bool = False
    """The items are artifacts."""
    limit: int = 0
    """How many iterations may go on at once; 0: all of them."""


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
    """Every task that an input names, and those that the pipeline names beside them."""
    condition: Condition | None = None
    run_always: bool = False
    """Run when all before it are over, however they ended."""
    loop: Loop | None = None
    retry: Retry = Retry()
    reuse: bool = True
    """An earlier task that did the same may stand for it."""
    cache_key: str = ""
    """What makes a task the same, where its author decided that."""


class Dag(Struct, frozen=True, dict=True):
    """A pipeline's own tasks; an output may have several sources, of which one will exist."""

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
    """A lightweight component: a function, with the module it stands in as text."""

    source: str
    function: str
    environment: Mapping[str, str]
    installs: tuple[tuple[str, ...], ...] = ()
    """What pip is to be given, one call after the other, before it runs."""


class Command(Struct, frozen=True):
    """A container component: words that are run in an image; each may hold placeholders."""

    image: str
    command: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    location: str
    """Where it stands in the file."""


class Importer(Struct, frozen=True):
    """An artifact that is somewhere already."""

    uri: Input
    slot: ArtifactSlot
    metadata: Mapping[str, Any]
    to_workspace: bool = False
    """Copy it to the directory that the tasks of a run share."""


class VolumeClaim(Struct, frozen=True):
    """A volume is made, or deleted: on a cluster too, no container runs for it."""

    delete: bool


class Resources(Struct, frozen=True):
    """What a task asks for: quantities, or texts that become some when its inputs are known."""

    cpu: Any = None
    memory: Any = None
    accelerators: Any = None


class EnvVar(Struct, frozen=True):
    """A variable that holds a key of a secret, or of a configuration map."""

    variable: str
    kind: str
    name: str
    """Of the secret or the map; it may hold placeholders of the task's inputs."""
    key: str
    optional: bool
    location: str


class Mount(Struct, frozen=True):
    """A secret, a configuration map, a claim or an empty directory that is found at a path."""

    path: str
    kind: str
    name: str
    sub_path: str = ""
    optional: bool = False
    location: str = ""


class Platform(Struct, frozen=True):
    """What is asked of the cluster that would run a task."""

    env_vars: tuple[EnvVar, ...] = ()
    mounts: tuple[Mount, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """Variables that hold a fact of the Pod, by the fact's path; after `=`, the fact itself."""
    deadline: int | None = None
    ignored: Mapping[str, Any] = field(default_factory=dict)
    """What has no effect here."""
    inputs: Mapping[str, Input] = field(default_factory=dict)
    """Inputs of the task that the names above speak of, beside its own."""


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
    """What will be different here from a cluster, to be said before it runs."""
    workspace: bool = False
    """Its tasks share a directory."""
    deadline: int | None = None
    """The seconds after which a run is stopped."""
