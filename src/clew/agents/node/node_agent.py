"""Put the node agent together: the Pods of the node, the observer, and two witnesses: one of files
on volumes, one of the requests in the logs of sidecars.

The Pods come from the API server in one thread, containers from the kernel in another; a container
is watched when both know it and the policy selects it.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from pathlib import Path

from clew import settings as settings_module
from clew.agents.node.containers.cgroups import container_of_path, find_pods_directory
from clew.agents.node.containers.container_discovery import ContainerWatch
from clew.agents.node.containers.container_settings import (
    ContainerSettings,
    read_addresses,
    read_settings,
)
from clew.agents.node.containers.watch_plan import (
    BoundClaim,
    Choice,
    PlannedContainer,
    PlannedPod,
    bound_claim,
    claims_of,
    plan_pod,
)
from clew.agents.node.file_witness import FileWitness
from clew.agents.node.lifecycle_events import node_started
from clew.agents.node.node_observer import NodeObserver
from clew.agents.pod.file_sidecar_names import CONTAINER
from clew.agents.sidecars.node_logs import KUBELET, NodeLogs
from clew.agents.spool import Spool
from clew.documents.ids import Uid
from clew.errors import UsageError
from clew.kube.node_pods import NodePods
from clew.kube.objects import Json, namespace_of
from clew.prov.cluster.activity_uids import node_uid, object_uid
from clew.settings import Settings
from clew.witness.environment import machine_facets
from clew.witness.volumes.selection import Policy, Subject, selects

_LIST_SECONDS = 60.0
_GONE_PODS = 100
_HOST_ROOT = Path("/proc/1/root")
"""Where the files of the node are: the agent sees the processes of the node."""


class PodPlans:
    """The plans of the Pods of this node, by uid; for a while also of those that are gone: a
    container of theirs may not be reported yet."""

    def __init__(self, node: str, machine: str, sidecars: NodeLogs) -> None:
        """`sidecars` is told of every Pod too."""
        self._machine = machine
        self._sidecars = sidecars
        self._claims: dict[tuple[str, str], BoundClaim] = {}
        self._plans: dict[Uid, PlannedPod] = {}
        self._gone: deque[PlannedPod] = deque(maxlen=_GONE_PODS)
        self.pods = NodePods(node, self._see, self._forget, sidecars.set_connected)

    def find(self, uid: Uid) -> PlannedPod | None:
        found = self._plans.get(uid)
        return found or next((one for one in list(self._gone) if one.uid == uid), None)

    def present(self) -> set[Uid]:
        return set(self._plans)

    def _see(self, pod: Json) -> None:
        self._sidecars.see(pod)
        namespace = namespace_of(pod)
        claims = {}
        for name in claims_of(pod):
            bound = self._claims.get((namespace, name)) or self._read(namespace, name)
            if bound is not None:
                claims[name] = bound
        plan = plan_pod(pod, claims, machine=self._machine)
        if plan is not None:
            self._plans[plan.uid] = plan

    def _read(self, namespace: str, name: str) -> BoundClaim | None:
        found = self.pods.read_claim(namespace, name)
        bound = bound_claim(*found) if found else None
        if bound is not None:
            self._claims[namespace, name] = bound
        return bound

    def _forget(self, uid: str) -> None:
        self._sidecars.forget(uid)
        known = object_uid(uid)
        if known is not None:
            plan = self._plans.pop(known, None)
            if plan is not None:
                self._gone.append(plan)
                self._claims = {k: v for k, v in self._claims.items() if k[0] != plan.namespace}


class ContainerChoice:
    """Which mounts of a container are watched, and what the policy looked at."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.subjects: dict[Uid, Subject] = {}

    def choose(self, pod: PlannedPod, name: str, cgroup: bytes, pid: int | None) -> Choice:
        """`pid`: the container's first process; None: the container has ended."""
        if CONTAINER in pod.containers:
            return Choice()  # its own witness sees these mounts, which its layers hide
        planned = pod.containers[name]
        uid = container_of_path(os.fsdecode(cgroup))
        if pid is None:
            subject = _describe_ended(pod, planned, os.fsdecode(cgroup))
        else:
            settings = read_settings(pid, uid.partition("/")[2] if uid else "")
            if settings is None:
                settings = _running_settings(pid, planned)
            subject = Subject(
                namespace=pod.namespace,
                pod=pod.name,
                container=name,
                labels=pod.labels,
                addresses=pod.addresses or read_addresses(pid),
                cgroup=os.fsdecode(cgroup),
                uid=settings.user,
                gid=settings.group,
                contexts=[*(["privileged"] if planned.privileged else []), *settings.labels],
            )
        mounts = [one for one in planned.mounts if selects(self._policy, subject, one.volume.key)]
        unseen = [one for one in planned.unseen if selects(self._policy, subject, one.key)]
        if mounts and uid is not None:
            self.subjects[uid] = subject
        return Choice(mounts, unseen)


class NodeAgent:
    """Both witnesses, which share one spool; a failure of one ends the other."""

    def __init__(self, files: FileWitness, sidecars: NodeLogs) -> None:
        self.files = files
        self.sidecars = sidecars

    def run(self, stopping: threading.Event) -> None:
        failures: list[BaseException] = []

        def follow() -> None:
            try:
                self.sidecars.run(stopping)
            except BaseException as error:
                failures.append(error)
                stopping.set()

        thread = threading.Thread(target=follow, name="clew-sidecars")
        thread.start()
        try:
            self.files.run(stopping)
        finally:
            stopping.set()
            thread.join()
        if failures:
            raise failures[0]


def make_witness(
    settings: Settings,
    spool: Spool,
    state: Path,
    *,
    node: str,
    policy: Policy,
    cgroup: Path | None = None,
    kubelet: Path | None = None,
) -> NodeAgent:
    """Everything that `clew agent node` needs, ready to run."""
    pods = cgroup or find_pods_directory(Path("/proc/self/cgroup").read_text())
    if pods is None or not pods.is_dir():
        raise UsageError(
            "there is no cgroup of Pods here",
            hint="run it on a node, with the node's /sys/fs/cgroup, or name it with --cgroup",
        )
    machine = settings_module.machine_id(settings)
    root = _HOST_ROOT if os.access(_HOST_ROOT / "etc", os.R_OK) else Path("/")
    facets = machine_facets(root, os.environ, machine=machine)
    logs = kubelet or root / KUBELET.relative_to("/")
    sidecars = NodeLogs(spool, state / "sidecars", policy=policy, kubelet=logs)
    plans = PodPlans(node, str(facets["machine"]), sidecars)
    plans.pods.start()
    if not plans.pods.wait_until_listed(_LIST_SECONDS):
        raise UsageError(
            f"the Pods of the node {node} cannot be listed", hint="see the log for the reason"
        )
    choice = ContainerChoice(policy)
    started = node_started(node_uid(node, str(facets["boot"])), node, time.time_ns(), facets)
    files = FileWitness(
        observer=NodeObserver(ContainerWatch(pods), plans.find, choice.choose),
        spool=spool,
        state=state,
        policy=policy,
        node=started,
        subject_of=choice.subjects,
    )
    for witness in (files, sidecars):
        witness.forget_absent(plans.present())
    return NodeAgent(files, sidecars)


def _describe_ended(pod: PlannedPod, planned: PlannedContainer, cgroup: str) -> Subject:
    """What is known of a container without its process."""
    return Subject(
        namespace=pod.namespace,
        pod=pod.name,
        container=planned.name,
        labels=pod.labels,
        addresses=pod.addresses or None,
        cgroup=cgroup,
        uid=planned.user,
        gid=planned.group,
        contexts=["privileged"] if planned.privileged else None,
    )


def _running_settings(pid: int, planned: PlannedContainer) -> ContainerSettings:
    """Where the runtime has no bundle: what the Pod asks for, else what the process has now."""
    try:
        status = os.stat(f"/proc/{pid}")
        user, group = status.st_uid, status.st_gid
    except OSError:
        user = group = 0
    return ContainerSettings(
        user if planned.user is None else planned.user,
        group if planned.group is None else planned.group,
        (),
    )
