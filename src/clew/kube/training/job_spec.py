"""A training job as its user wrote it, with upstream's defaults.

The types of replicas may be written in any case. A job that the API server's schema should have
refused, because it was created before the schema was, has a `fault`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.kube.objects import Json, Object, dig, name_of, namespace_of

OPERATOR_LABEL = "training.kubeflow.org/operator-name"
JOB_LABEL = "training.kubeflow.org/job-name"
TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"
ROLE_LABEL = "training.kubeflow.org/job-role"

_MOST = 10**9
"""Seconds (or failures) beyond this are as good as no limit, and can be added to a time."""

MOST_REPLICAS = 4096
"""Of a job. The operator lists them in memory, and each has the addresses of all others."""

MANAGER = "kubeflow.org/training-operator"
"""Jobs with another manager are left to it."""


@dataclass(frozen=True)
class Framework:
    kind: str
    replicas_field: str
    container: str
    """The name of the container that trains."""
    port_name: str
    port: int
    restart_policy: str
    """The default."""
    types: tuple[str, ...]
    """In the order in which replicas are created and counted."""

    @property
    def leaders(self) -> tuple[str, ...]:
        """The types whose success is that of the job."""
        return tuple(each for each in ("Chief", "Master") if each in self.types)


FRAMEWORKS = {
    "TFJob": Framework(
        kind="TFJob",
        replicas_field="tfReplicaSpecs",
        container="tensorflow",
        port_name="tfjob-port",
        port=2222,
        restart_policy="Never",
        types=("Chief", "Master", "Evaluator", "PS", "Worker"),
    ),
    "PyTorchJob": Framework(
        kind="PyTorchJob",
        replicas_field="pytorchReplicaSpecs",
        container="pytorch",
        port_name="pytorchjob-port",
        port=23456,
        restart_policy="OnFailure",
        types=("Master", "Worker"),
    ),
}


class ReplicaId(NamedTuple):
    """Which replica of a job: its type and its number among those of the type."""

    type: str
    number: int

    def __str__(self) -> str:
        return f"{self.type.lower()} {self.number}"


@dataclass(frozen=True)
class ReplicaSpec:
    count: int
    restart_policy: str
    template: Json = field(hash=False)

    @property
    def pod(self) -> Json:
        return dict(dig(self.template, "spec") or {})


@dataclass(frozen=True)
class RunPolicy:
    clean: str = "None"
    """Which Pods go when the job ends: None, Running or All."""
    time_to_live: int | None = None
    deadline: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    scheduling: Json = field(default_factory=dict, hash=False)
    manager: str = MANAGER


@dataclass(frozen=True)
class TrainingJob:
    resource: Object = field(hash=False)
    framework: Framework
    replicas: Mapping[str, ReplicaSpec] = field(hash=False)
    """By type, in the order of the framework."""
    policy: RunPolicy
    fault: str = ""
    """Why it cannot run; empty if it can."""

    @property
    def kind(self) -> str:
        return self.framework.kind

    @property
    def name(self) -> str:
        return name_of(self.resource)

    @property
    def namespace(self) -> str:
        return namespace_of(self.resource)

    @property
    def spec(self) -> Object:
        return self.resource.get("spec") or {}

    @property
    def leader(self) -> str | None:
        """The type that decides whether the job succeeds; None: its workers do."""
        return next((each for each in self.framework.leaders if each in self.replicas), None)

    @property
    def total(self) -> int:
        return sum(each.count for each in self.replicas.values())

    @property
    def dynamic_workers(self) -> bool:
        return self.spec.get("enableDynamicWorker") is True

    @property
    def elastic_policy(self) -> Object | None:
        found: Object | None = self.spec.get("elasticPolicy")
        return found

    @property
    def all_workers_decide(self) -> bool:
        """Whether each worker must succeed; else worker 0 decides, if there is no chief."""
        return self.spec.get("successPolicy") == "AllWorkers"

    def list_replicas(self) -> Iterator[ReplicaId]:
        for type_, spec in self.replicas.items():
            yield from (ReplicaId(type_, index) for index in range(spec.count))

    def replica_name(self, replica: ReplicaId) -> str:
        """The name of its Pod and its Service."""
        return f"{self.name}-{replica.type.lower()}-{replica.number}"

    def labels(self, type_: str) -> dict[str, str]:
        """Of all replicas of a type."""
        return {
            OPERATOR_LABEL: f"{self.kind.lower()}-controller",
            JOB_LABEL: self.name,
            TYPE_LABEL: type_.lower(),
        }


def parse_job(resource: Object) -> TrainingJob:
    framework = FRAMEWORKS[resource["kind"]]
    written = dig(resource, "spec", framework.replicas_field) or {}
    known = {each.lower(): each for each in framework.types}
    by_type = {known[each.lower()]: each for each in written if each.lower() in known}
    replicas = {
        each: _parse_replicas(written[by_type[each]], framework)
        for each in framework.types
        if each in by_type
    }
    return TrainingJob(
        resource=resource,
        framework=framework,
        replicas=replicas,
        policy=_parse_policy(dig(resource, "spec", "runPolicy") or {}),
        fault=_find_fault(framework, written, replicas),
    )


def _parse_replicas(written: Object, framework: Framework) -> ReplicaSpec:
    count = written.get("replicas")
    return ReplicaSpec(
        count=1 if count is None else int(count),
        restart_policy=written.get("restartPolicy") or framework.restart_policy,
        template=dict(written.get("template") or {}),
    )


def _parse_policy(written: Object) -> RunPolicy:
    return RunPolicy(
        clean=written.get("cleanPodPolicy") or "None",
        time_to_live=_number(written.get("ttlSecondsAfterFinished")),
        deadline=_number(written.get("activeDeadlineSeconds")),
        backoff_limit=_number(written.get("backoffLimit")),
        suspend=written.get("suspend") is True,
        scheduling=dict(written.get("schedulingPolicy") or {}),
        manager=written.get("managedBy") or MANAGER,
    )


def _number(found: Any) -> int | None:
    return None if found is None else min(int(found), _MOST)


def _find_fault(framework: Framework, written: Object, replicas: Mapping[str, ReplicaSpec]) -> str:
    at = f"spec.{framework.replicas_field}"
    if not replicas:
        return f"{at} names no replicas: {', '.join(framework.types)}."
    if len(replicas) < len(written):
        return f"{at} may only have {', '.join(framework.types)}, each once."
    for type_, spec in replicas.items():
        names = [each.get("name") for each in spec.pod.get("containers") or ()]
        if framework.container not in names:
            return f"{at}.{type_}.template.spec.containers has none named {framework.container}."
    if sum(spec.count for spec in replicas.values()) > MOST_REPLICAS:
        return f"{at} has more than {MOST_REPLICAS} replicas."
    return ""


def main_container(pod: Object, framework: Framework) -> Json:
    """The container that trains, of a Pod's spec."""
    found: Json = next(c for c in pod["containers"] if c.get("name") == framework.container)
    return found


def port_of(job: TrainingJob, type_: str) -> int:
    """The port at which the replicas of a type are reached."""
    main = main_container(job.replicas[type_].pod, job.framework)
    named = (p for p in main.get("ports") or () if p.get("name") == job.framework.port_name)
    return int(next((p["containerPort"] for p in named), job.framework.port))
