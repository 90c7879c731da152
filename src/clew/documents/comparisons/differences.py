"""Differences between two executions, two pipeline runs, or two artifacts."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from clew.documents.document import Document
from clew.documents.ids import ExecutionId, ProcessId, RunId

Verdict = Literal["identical", "equivalent", "different"]


class Difference(Document, frozen=True, kw_only=True):
    """One thing in which two executions ended differently: a file, a stream or the status."""

    path: str
    path_b64: str | UnsetType = UNSET
    kind: str
    """content, equivalent, mode, missing (in b), extra (in b), removed, status, unknown."""
    a: str | int | None
    """A digest, a mode or an exit status."""
    b: str | int | None
    rule: str | UnsetType = UNSET
    lines: tuple[str, ...] | UnsetType = UNSET
    """The difference of two small texts, as `diff -u` writes it."""


class Cause(Document, frozen=True, kw_only=True):
    """A possible cause of a divergence."""

    cause: str
    detail: str
    confidence: Literal["confirmed", "candidate"]


class Divergence(Document, frozen=True, kw_only=True):
    """The first process of `b` that diverged, and the one of `a` it is compared with."""

    process: ProcessId
    of: ProcessId
    command: tuple[str, ...]
    causes: tuple[Cause, ...]


class Change(Document, frozen=True, kw_only=True):
    """A value in `a` and in `b`."""

    a: Any
    b: Any


class PackageChange(Document, frozen=True, kw_only=True):
    """The versions of a package; null where it was not used."""

    manager: str
    name: str
    a: str | None
    b: str | None


class ProcessChange(Document, frozen=True, kw_only=True):
    a: ProcessId | None
    b: ProcessId | None
    kind: Literal["changed", "missing", "extra"]
    command: tuple[str, ...]
    changes: dict[str, Change] | UnsetType = UNSET
    """Changes of `command`, `exe` and `status`."""


class ExecutionDiff(Document, frozen=True, kw_only=True):
    """How execution `b` differs from `a`."""

    a: ExecutionId
    b: ExecutionId
    verdict: Verdict
    """How the outputs compare."""
    command: Change | None
    environment: dict[str, Any]
    """`{name: {a, b}}`; under `variables`, as many by name."""
    packages: tuple[PackageChange, ...]
    hardware: dict[str, Any]
    processes: tuple[ProcessChange, ...]
    inputs: tuple[Difference, ...]
    outputs: tuple[Difference, ...]
    divergence: Divergence | None

    @property
    def differs(self) -> bool:
        parts = (self.command, self.environment, self.packages, self.hardware, self.processes)
        return any((*parts, self.inputs, self.outputs))


class ImageChange(Document, frozen=True, kw_only=True):
    """The images of a container in both Pods; null where there is no such container."""

    container: str
    a: str | None
    """The digest that ran."""
    b: str | None
    name_a: str | None
    """As the Pod names it."""
    name_b: str | None


class PodDiff(Document, frozen=True, kw_only=True):
    """How Pod `b` differs from Pod `a`."""

    a: ExecutionId
    b: ExecutionId
    pods: tuple[str, str]
    """NAMESPACE/NAME of both."""
    verdict: Verdict
    """How the outputs compare."""
    images: tuple[ImageChange, ...]
    command: dict[str, Change]
    """By container, command and arguments."""
    environment: dict[str, dict[str, Change]]
    """By container, the variables; secret values are masked in both."""
    config_maps: tuple[Difference, ...]
    """ConfigMaps and Secrets; null where a Pod used none of this name."""
    inputs: tuple[Difference, ...]
    outputs: tuple[Difference, ...]
    hardware: dict[str, Change]
    """Of the nodes, with their names as `node`."""

    @property
    def differs(self) -> bool:
        parts = (self.images, self.command, self.environment, self.config_maps, self.hardware)
        return any((*parts, self.inputs, self.outputs))


class TaskDiff(Document, frozen=True, kw_only=True):
    """How a task of two runs differs. Values are those of both runs."""

    name: str
    state: tuple[str | None, str | None]
    given: Literal["same", "different"] | None
    """Whether its inputs were the same; null if only one run has it."""
    parameters: dict[str, tuple[Any, Any]] | UnsetType = UNSET
    made: dict[str, tuple[Any, Any]]


class RunDiff(Document, frozen=True, kw_only=True):
    """How run `b` differs from run `a`. Values are those of both runs."""

    a: RunId | None
    b: RunId | None
    inputs: dict[str, tuple[Any, Any]]
    outputs: dict[str, tuple[Any, Any]]
    tasks: tuple[TaskDiff, ...]
    divergence: str | None
    """The first task with the same inputs and other outputs."""


class ArtifactDiff(Document, frozen=True, kw_only=True):
    """In what files two artifacts differ."""

    a: str
    b: str
    verdict: Verdict
    files: tuple[Difference, ...]
