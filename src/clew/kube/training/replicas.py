"""The Pods of a job, by the replica that each is, and the state of each."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from clew.kube.objects import (
    Object,
    dig,
    is_deleting,
    labels_of,
    name_of,
    parse_time,
    uid_of,
)
from clew.kube.pod_status import container_status, container_statuses, ended_state, waiting_state
from clew.kube.training.job_spec import (
    INDEX_LABEL,
    TYPE_LABEL,
    ReplicaId,
    TrainingJob,
)


@dataclass(frozen=True)
class ReplicaPod:
    replica: ReplicaId
    pod: Object = field(hash=False)
    container: str
    """The name of the container that trains."""

    @property
    def name(self) -> str:
        return name_of(self.pod)

    @property
    def uid(self) -> str:
        return uid_of(self.pod)

    @property
    def phase(self) -> str:
        return str(dig(self.pod, "status", "phase") or "Pending")

    @property
    def is_running(self) -> bool:
        return self.phase == "Running" and not self.is_leaving

    @property
    def has_succeeded(self) -> bool:
        return self.phase == "Succeeded"

    @property
    def has_failed(self) -> bool:
        """A Pod that is being deleted ends because of that."""
        return self.phase == "Failed" and not self.is_leaving

    @property
    def is_active(self) -> bool:
        return self.phase not in ("Succeeded", "Failed")

    @property
    def is_leaving(self) -> bool:
        return is_deleting(self.pod)

    @property
    def end(self) -> Object:
        """How the container that trains ended; empty if it has not, or nobody knows."""
        return ended_state(container_status(self.pod, self.container))

    @property
    def exit_code(self) -> int | None:
        found = self.end.get("exitCode")
        return None if found is None else int(found)

    @property
    def ended(self) -> datetime | None:
        return parse_time(self.end.get("finishedAt"))

    @property
    def failures(self) -> int:
        """How often it failed: as a whole, and in containers that the node starts again."""
        return sum(map(_restarts_of, container_statuses(self.pod))) + int(self.has_failed)


def _restarts_of(status: Object) -> int:
    """With the one that the node is about to make."""
    waits = waiting_state(status).get("reason") == "CrashLoopBackOff"
    return int(status.get("restartCount") or 0) + int(waits)


def collect_replicas(job: TrainingJob, pods: Iterable[Object]) -> dict[ReplicaId, ReplicaPod]:
    """By replica; `pods` are those that the job owns. One whose labels name no replica is passed
    over: another owner made it, and may need it."""
    types = {each.lower(): each for each in job.framework.types}
    found = {}
    for pod in pods:
        type_, number = labels_of(pod).get(TYPE_LABEL, ""), labels_of(pod).get(INDEX_LABEL, "")
        if type_ in types and number.isdecimal():
            replica = ReplicaId(types[type_], int(number))
            found[replica] = ReplicaPod(replica, pod, job.framework.container)
    return found
