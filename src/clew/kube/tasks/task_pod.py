"""The Pod of one attempt of a task, as typed values.

It has two containers. The first, the helper, has the image of Clew: it fetches the inputs, and
stores the outputs when the task has ended. The second, `main`, has the image of the task and no
credentials. They share the directories `SHARED`. The program `clew-step` starts the command of
`main` when the helper has written `READY`, and says in `STATUS` how it ended:

    /clew/bin/clew-step   copied by the helper's container before `main` is created
    /clew/ready           the helper made it: the inputs are complete
    /clew/lock            clew-step holds its lock (flock) while it runs
    /clew/status          the exit status of the command, as text; written at once

If clew-step was killed, the lock is free and there is no status: the task failed. If the helper
put a tracer there, the command runs under it, where the node permits that:

    /clew/bin/clew-trace, /clew/bin/libclew-inject.so
    /clew/trace/records   what it recorded
    /clew/trace/why-not   instead: why it does not work there
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

RUN_LABEL = "clew.dev/run"
TASK_LABEL = "clew.dev/task"
TASK_ANNOTATION = "clew.dev/task-path"
HELPER = "clew"
MAIN = "main"
"""The names of the containers."""
CONTROL = "/clew"
DATA = "/s3"
SHARED = (CONTROL, DATA)
"""Directories that both containers have: for control, and for data, `s3://` as a directory."""
STEP = f"{CONTROL}/bin/clew-step"
READY = f"{CONTROL}/ready"
LOCK = f"{CONTROL}/lock"
STATUS = f"{CONTROL}/status"
PROGRAMS = f"{CONTROL}/bin"
TRACE = f"{CONTROL}/trace"
RECORDS = "records"
WHY_NOT = "why-not"
"""The names of files in `TRACE`."""
_NOT_NAME = re.compile(r"[^a-z0-9]+")


class KeyVariable(Struct, frozen=True):
    """A variable with the value of one key of a Secret or ConfigMap."""

    name: str
    kind: Literal["secret", "configmap"]
    source: str
    """The name of the Secret or ConfigMap."""
    key: str
    optional: bool = False


class FieldVariable(Struct, frozen=True):
    """A variable with the value of a field of the Pod, such as `metadata.name`."""

    name: str
    path: str


class SecretVolume(Struct, frozen=True, tag=True):
    name: str
    optional: bool = False


class ConfigMapVolume(Struct, frozen=True, tag=True):
    name: str
    optional: bool = False


class ClaimVolume(Struct, frozen=True, tag=True):
    """A PersistentVolumeClaim of the namespace."""

    claim: str


class EmptyVolume(Struct, frozen=True, tag=True):
    """An empty directory that goes with the Pod."""

    name: str
    """Mounts with equal values share the directory."""
    medium: str = ""
    """`Memory`, or empty for the disk of the node."""
    size: str = ""
    """Its limit; empty for none."""


class EphemeralVolume(Struct, frozen=True, tag=True):
    """A claim that is made for the Pod, and goes with it."""

    name: str
    size: str
    access_modes: tuple[str, ...]
    storage_class: str | None = None
    """None is the default of the cluster."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


Volume = SecretVolume | ConfigMapVolume | ClaimVolume | EmptyVolume | EphemeralVolume


class Mount(Struct, frozen=True):
    """A volume at a path of the task's container."""

    path: str
    volume: Volume
    sub_path: str = ""


class Helper(Struct, frozen=True, kw_only=True):
    """The container that moves the task's data. Its image has `clew-step` in its PATH."""

    image: str
    command: tuple[str, ...]
    env: Mapping[str, str] = {}
    secret: str = ""
    """A Secret whose keys are variables of this container alone: the credentials of the store."""
    requests: Mapping[str, str] = field(default_factory=lambda: {"cpu": "10m", "memory": "64Mi"})
    """A quota of the namespace may demand some."""
    limits: Mapping[str, str] = {}
    pull_policy: str = "IfNotPresent"


class TaskPod(Struct, frozen=True, kw_only=True):
    """One attempt of a task. Values with names of Kubernetes mean what they mean there."""

    name: str
    """From `pod_name`: who starts the same attempt again finds the Pod, and makes no other."""
    namespace: str
    run: str
    """The uid of the run."""
    task: str
    """The path of the task in its run."""
    helper: Helper
    image: str
    command: tuple[str, ...]
    """Not empty: what an image would run by itself is known to the node alone."""
    args: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    key_variables: tuple[KeyVariable, ...] = ()
    field_variables: tuple[FieldVariable, ...] = ()
    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()
    affinity: Mapping[str, Any] = {}
    scheduler: str = ""
    deadline: int | None = None
    """Seconds after which Kubernetes ends it (`activeDeadlineSeconds`)."""


def pod_name(run: str, task: str, attempt: int) -> str:
    """The name of the Pod of an attempt: the same for everybody, and of no other attempt."""
    digest = hashlib.blake2b(f"{run}\0{task}\0{attempt}".encode(), digest_size=8).hexdigest()
    readable = _NOT_NAME.sub("-", task.rpartition("/")[2].lower())[:32].strip("-")
    return "-".join(part for part in ("clew", readable, digest) if part)


def task_label(task: str) -> str:
    """The value of `TASK_LABEL`: a path may be too long for a label, or have other characters."""
    return hashlib.blake2b(task.encode(), digest_size=16).hexdigest()
