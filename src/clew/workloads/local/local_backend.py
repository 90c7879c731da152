"""The back end of one machine: satisfies `workloads.backend.Backend` with processes and files."""

import getpass
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path

from clew.documents.workloads.workload import Culling, Features, StorageClass
from clew.errors import Exists, NotAllowed, NotFound
from clew.kube.backend.log_positions import LogChunk
from clew.kube.objects import Json, Key, Object, name_of
from clew.project_directory import ProjectDirectory
from clew.workloads.local.culler import Culler, TrafficSource
from clew.workloads.local.idle_limit import IdleLimit
from clew.workloads.local.installer import Installer, Interpreters
from clew.workloads.local.pods import make_pod, owner_of_pod
from clew.workloads.local.processes.launch_plan import Planner, claims_used_by
from clew.workloads.local.processes.running_process import Address
from clew.workloads.local.processes.runtime_directory import RuntimeDirectory
from clew.workloads.local.processes.supervisor import PROCESS_KINDS, Supervisor
from clew.workloads.local.resource_files import NAMESPACE, ResourceFiles
from clew.workloads.local.server_lock import ServerLock
from clew.workloads.local.validation import check_namespace, check_resource
from clew.workloads.local.volume_directories import (
    PROJECT,
    STORAGE_CLASS,
    VolumeDirectories,
    project_created,
)

_CLAIM = "PersistentVolumeClaim"


class LocalBackend:
    """Only one server at a time may run the notebooks of a project."""

    kind = "local"
    namespace = NAMESPACE

    def __init__(
        self,
        directory: ProjectDirectory,
        *,
        idle_minutes: float | None = None,
    ) -> None:
        """`idle_minutes`: when unused notebooks are stopped, unless they have a limit of their own;
        None: as the project has it."""
        self.lock = ServerLock(lock_path(directory))
        own = directory.path / "workloads"
        self.user = getpass.getuser()
        self._idle_limit = IdleLimit(own / "idle-limit.json", idle_minutes)
        self._files = ResourceFiles(own / "resources", check=check_resource)
        self._volumes = VolumeDirectories(
            directory.root, directory.path, directory.uid, project_created(directory.path)
        )
        programs = directory.path / "programs"
        interpreters = Interpreters(programs)
        self._planner = Planner(self._files, self._volumes, interpreters, directory.root.resolve())
        self._runtime = RuntimeDirectory(own / "runtime")
        self._supervisor = Supervisor(
            self._files,
            self._volumes,
            self._planner,
            logs=own / "logs",
            roots=own / "roots",
            runtime=self._runtime.path,
            owner=directory.uid,
        )
        self.programs = Installer(programs, interpreters, on_change=self._programs_changed)
        self._culler = Culler(self._files, self._supervisor, limit=self._idle_limit)

    def start(self, traffic: TrafficSource = dict) -> None:
        """Start all notebooks, TensorBoards and viewers that are not stopped. `traffic`: when each
        was last used through the proxy."""
        self._supervisor.start()
        self._culler.start(traffic)

    def begin_close(self) -> None:
        """Begin to end all processes."""
        self.lock.withdraw()
        self._supervisor.begin_close()

    def close(self) -> None:
        """End all processes; they start again with the next server."""
        self._culler.close()
        self.programs.close()
        self._supervisor.close()
        self._runtime.close()
        self.lock.close()

    def may_read(self, namespace: str, *, user: str | None, groups: Sequence[str]) -> bool:
        return True

    def namespaces(self) -> Sequence[str]:
        return (NAMESPACE,)

    def features(self) -> Features:
        return Features(
            notebooks=True,
            tensorboards=True,
            volumes=True,
            snapshots=False,
            gpus=(),  # a notebook sees all GPUs of the machine: there is nothing to choose
            culling=Culling(enabled=True, idle_minutes=self._idle_limit.minutes),
        )

    def set_idle_minutes(self, minutes: float | None) -> None:
        self._idle_limit.save(minutes)
        self._files.touch()

    def version(self) -> int:
        return self._files.version

    def storage_classes(self) -> Sequence[StorageClass]:
        return (StorageClass(name=STORAGE_CLASS, default=True),)

    def address(self, key: Key) -> Address | None:
        """The address of a resource; None: it is not ready."""
        return self._supervisor.address(key)

    def list(
        self, kind: str, namespace: str, *, labels: Mapping[str, str] | None = None
    ) -> Sequence[Json]:
        check_namespace(namespace)
        if kind == "Pod":
            wanted = (labels or {}).items()
            return [pod for pod in self._pods() if wanted <= pod["metadata"]["labels"].items()]
        found = self._files.list(kind, labels)
        if kind == _CLAIM and not labels:
            return [self._volumes.project_claim(), *found]
        return found

    def get(self, key: Key) -> Json:
        check_namespace(key.namespace)
        if key == Key(_CLAIM, NAMESPACE, PROJECT):
            return self._volumes.project_claim()
        if key.kind == "Pod":
            for pod in self._pods():
                if name_of(pod) == key.name:
                    return pod
        return self._files.get(key)

    def create(self, resource: Object, *, dry_run: bool = False) -> Json:
        self._check(resource)
        key = Key(str(resource["kind"]), NAMESPACE, name_of(resource))
        if key == Key(_CLAIM, NAMESPACE, PROJECT):
            raise Exists("the volume project is the project itself", hint="choose another name")
        if not dry_run:
            return self._changed(self._files.create(resource))
        self._check_free(key)
        return dict(resource)

    def merge_patch(self, key: Key, patch: Object) -> Json:
        self._check_changeable(key)
        return self._changed(self._files.merge_patch(key, patch, check=self._check))

    def replace(self, resource: Object) -> Json:
        self._check(resource)
        key = Key(str(resource["kind"]), NAMESPACE, name_of(resource))
        self._check_changeable(key)
        return self._changed(self._files.replace(key, resource))

    def delete(self, key: Key) -> None:
        check_namespace(key.namespace)
        self._check_changeable(key)
        self._files.mark_deleted(key)
        self._supervisor.wake()

    def pods_of(self, key: Key) -> Sequence[Json]:
        check_namespace(key.namespace)
        if key.kind != _CLAIM:
            found = self._pod(self._files.get(key))
            return [found] if found else []
        return [
            pod
            for kind in PROCESS_KINDS
            for resource in self._files.list(kind)
            if key.name in claims_used_by(resource) and (pod := self._pod(resource))
        ]

    def read_log(self, namespace: str, pod: str, container: str, *, tail: int | None = None) -> str:
        key = self._owner(namespace, pod)
        return self._supervisor.log(key).read(tail).decode(errors="replace")

    async def follow_log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        tail: int | None = None,
        after: str | None = None,
    ) -> AsyncGenerator[LogChunk]:
        key = self._owner(namespace, pod)

        def is_over() -> bool:
            runtime = self._supervisor.runtime(key)
            return runtime is None or (runtime.process is None and runtime.reason.name == "Stopped")

        async for chunk in self._supervisor.log(key).follow(tail, is_over, after):
            yield chunk

    def _owner(self, namespace: str, pod: str) -> Key:
        check_namespace(namespace)
        key = owner_of_pod(pod)
        if key is None:
            raise NotFound(f"there is no process {pod[:100]}")
        self._files.get(key)
        return key

    def _pods(self) -> Sequence[Json]:
        found = (self._pod(one) for kind in PROCESS_KINDS for one in self._files.list(kind))
        return [pod for pod in found if pod]

    def _pod(self, resource: Object) -> Json | None:
        key = Key(str(resource["kind"]), NAMESPACE, name_of(resource))
        return make_pod(resource, self._supervisor.runtime(key))

    def _changed(self, made: Json) -> Json:
        self._supervisor.retry()  # others may have waited for it
        return made

    def _programs_changed(self) -> None:
        self._files.touch()  # the pages show its output
        self._supervisor.replan()

    def _check_free(self, key: Key) -> None:
        try:
            self._files.get(key)
        except NotFound:
            return
        raise Exists(f"the name {key.name} is taken", hint="choose another name")

    def _check(self, resource: Object) -> None:
        check_resource(resource)
        if resource["kind"] == _CLAIM:
            self._volumes.check(resource)

    def _check_changeable(self, key: Key) -> None:
        if key == Key(_CLAIM, NAMESPACE, PROJECT):
            raise NotAllowed("the volume project is the project itself: it cannot be changed")


def lock_path(directory: ProjectDirectory) -> Path:
    """The file of the `ServerLock` of a project."""
    own = directory.path / "workloads"
    own.mkdir(mode=0o700, exist_ok=True)
    return own / "lock"
