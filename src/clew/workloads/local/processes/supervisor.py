"""Starts, watches and stops the processes of resources, and writes their status.

One thread does everything: it waits for exits, output, changed resources and its own deadlines, and
then compares what should run with what runs. It trusts no notification: a missed one only means
that the next round does the work. Processes end with this thread (see `run_child`).
"""

import logging
import os
import select
import selectors
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clew.kube.controller.model import is_stopped
from clew.kube.controller.status_reasons import STOPPED, STOPPING, Reason
from clew.kube.objects import Key, Object, dig, is_deleting, name_of, uid_of
from clew.workloads.local.processes.child_process import ChildProcess
from clew.workloads.local.processes.launch_plan import CannotStart, Planner, claims_used_by
from clew.workloads.local.processes.orphans import end_orphans
from clew.workloads.local.processes.process_log import ProcessLog
from clew.workloads.local.processes.process_status import (
    NOT_READY,
    RUNNING,
    STARTING,
    explain_exit,
    make_status,
)
from clew.workloads.local.processes.running_process import Address, Runtime
from clew.workloads.local.processes.start_preparation import find_port, prepare_start, remove_root
from clew.workloads.local.resource_files import NAMESPACE, ResourceFiles
from clew.workloads.local.volume_directories import VolumeDirectories

_LOG = logging.getLogger("clew.workloads")
PROCESS_KINDS = ("Notebook", "Tensorboard", "PVCViewer")
_IDLE_SECONDS = 5.0
_STARTING_SECONDS = 0.05
_TERMINATE_SECONDS = 8.0
"""How long a process may take to end before it is killed."""
_CLOSE_SECONDS = 2.5
_KILL_SECONDS = 1.0
_POLL_SECONDS = 0.1
_STABLE_SECONDS = 60.0
"""After so long, a crash counts as the first one again."""
_MAX_DELAY = 60.0
_UNKNOWN = -1
"""In place of the generation that a process was started with: its plan is made again."""


class Supervisor:
    def __init__(
        self,
        files: ResourceFiles,
        volumes: VolumeDirectories,
        planner: Planner,
        *,
        logs: Path,
        roots: Path,
        runtime: Path,
        owner: str,
    ) -> None:
        """`logs`: the directory of logs; `roots`: of the root directories of notebooks; `runtime`:
        a private, short path for sockets and port files; `owner`: the uid of the project."""
        self._files = files
        self._volumes = volumes
        self._planner = planner
        self._logs = logs
        self._roots = roots
        self._runtime = runtime
        self._owner = owner
        self._running: dict[Key, Runtime] = {}
        self._known_logs: dict[Key, ProcessLog] = {}
        self._ending = threading.Event()
        self._retry = threading.Event()
        self._replan = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, name="supervisor")

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Compare now what should run with what runs."""
        with suppress(BlockingIOError, OSError):
            os.write(self._wake_write, b"x")

    def retry(self) -> None:
        """Try again now to start what could not be started: a program may have been installed."""
        self._retry.set()
        self.wake()

    def replan(self) -> None:
        """Like `retry`, and start again what would run another program now: a notebook without
        JupyterLab, which has been installed."""
        self._replan.set()
        self.retry()

    def begin_close(self) -> None:
        self._ending.set()
        self.wake()

    def close(self) -> None:
        """End all processes; they come back at the next start."""
        self.begin_close()
        if self._thread.ident is not None:
            self._thread.join()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def log(self, key: Key) -> ProcessLog:
        """One object for each log: its readers and its writer share a lock."""
        path = self._logs / f"{key.kind.lower()}.{key.name}.log"
        return self._known_logs.setdefault(key, ProcessLog(path))

    def runtime(self, key: Key) -> Runtime | None:
        return self._running.get(key)

    def address(self, key: Key) -> Address | None:
        """None: it is not ready."""
        found = self._running.get(key)
        if found is None or found.port is None or found.start is None:
            return None
        return Address(found.port, found.start.token)

    def _run(self) -> None:
        end_orphans(self._owner)
        self._selector.register(self._wake_read, selectors.EVENT_READ, self._drain)
        while not self._ending.is_set():
            try:
                delay = self._reconcile_all()
            except Exception:
                _LOG.exception("the supervisor of notebooks failed; it tries again")
                delay = _IDLE_SECONDS
            self._wait(delay)
        self._stop_all()

    def _wait(self, seconds: float) -> None:
        for ready, _ in self._selector.select(seconds):
            handle: Callable[[], None] = ready.data
            handle()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake_read, 4096):
                pass

    def _reconcile_all(self) -> float:
        """Returns the seconds until the next round at the latest."""
        self._files.changed.clear()
        now = time.monotonic()
        if self._retry.is_set():
            self._retry.clear()
            for runtime in self._running.values():
                if not runtime.crashes:
                    runtime.retry_at = now
        if self._replan.is_set():
            self._replan.clear()
            for runtime in self._running.values():
                if runtime.start is not None:
                    runtime.start = runtime.start._replace(generation=_UNKNOWN)
        resources = {
            Key(kind, NAMESPACE, name_of(one)): one
            for kind in PROCESS_KINDS
            for one in self._files.list(kind)
        }
        for key in [key for key in self._running if key not in resources]:
            resources[key] = {}
        deadline = now + _IDLE_SECONDS
        for key, resource in resources.items():
            try:
                deadline = min(deadline, self._reconcile(key, resource, now))
            except Exception:  # one must not keep the others from running
                _LOG.exception("cannot reconcile the %s %s", key.kind, key.name)
        self._reconcile_claims()
        return max(0.0, deadline - time.monotonic())

    def _reconcile(self, key: Key, resource: Object, now: float) -> float:
        """Returns when to look again. `resource` is empty if it was removed."""
        uid = uid_of(resource) if resource else ""
        runtime = self._running.setdefault(key, Runtime(uid))
        self._observe_exit(key, runtime, now)
        wanted = bool(resource) and not is_deleting(resource) and not is_stopped(resource)
        if runtime.process is None:
            if not resource or runtime.uid != uid:
                del self._running[key]
                return now
            if is_deleting(resource):
                self._finish_deletion(key)
                return now
            if not wanted:
                runtime.reason, runtime.crashes, runtime.retry_at = STOPPED, 0, 0.0
            elif now >= runtime.retry_at:
                self._start(key, resource, runtime, now)
        elif not wanted or runtime.uid != uid or self._is_outdated(resource, runtime):
            self._terminate(runtime, now)
            runtime.reason = STARTING if wanted else STOPPING
        elif runtime.port is None:
            self._check_ready(key, runtime, now)
        if resource and runtime.uid == uid:
            self._files.write_status(key, uid, make_status(resource, runtime.reason))
        return self._deadline(runtime, wanted, now)

    def _deadline(self, runtime: Runtime, wanted: bool, now: float) -> float:
        if runtime.process is None:
            return max(runtime.retry_at, now + _STARTING_SECONDS) if wanted else now + _IDLE_SECONDS
        if runtime.terminate_at is not None:
            return runtime.terminate_at if not runtime.killed else now + _STARTING_SECONDS
        if runtime.port is None:
            return now + _STARTING_SECONDS
        return now + _IDLE_SECONDS

    def _is_outdated(self, resource: Object, runtime: Runtime) -> bool:
        """Whether the resource was edited since its process was started."""
        generation = int(dig(resource, "metadata", "generation") or 0)
        if runtime.start is None or runtime.start.generation == generation:
            return False
        try:
            plan = self._planner.plan(resource)
        except CannotStart:
            return True
        if plan.digest != runtime.digest:
            return True
        runtime.start = runtime.start._replace(generation=generation)
        return False

    def _start(self, key: Key, resource: Object, runtime: Runtime, now: float) -> None:
        runtime.retry_at = now + _IDLE_SECONDS
        try:
            plan = self._planner.plan(resource)
            start = prepare_start(
                plan,
                resource,
                roots=self._roots,
                runtime=self._runtime / uid_of(resource)[:8],
                owner=self._owner,
            )
            self._log_line(key, "starting")
            process = ChildProcess(
                start.command,
                environment=start.environment,
                directory=plan.directory,
                log=self.log(key),
            )
        except CannotStart as error:
            self._fail(key, runtime, error.reason)
            return
        except OSError as error:
            text = f"It cannot be started: {error.strerror or error}."
            self._fail(key, runtime, Reason("CannotStart", text))
            return
        self._running[key] = runtime
        runtime.process, runtime.start, runtime.digest = process, start, plan.digest
        runtime.port, runtime.began, runtime.terminate_at = None, now, None
        runtime.killed = False
        runtime.reason = STARTING
        self._selector.register(process.handle, selectors.EVENT_READ, lambda: None)
        self._selector.register(
            process.output, selectors.EVENT_READ, lambda: self._read_output(process)
        )

    def _read_output(self, process: ChildProcess) -> None:
        if not process.read_output():
            self._selector.unregister(process.output)

    def _fail(self, key: Key, runtime: Runtime, reason: Reason) -> None:
        if runtime.reason != reason:
            self._files.add_event(key, warning=True, reason=reason.name, message=reason.text)
        runtime.reason = reason

    def _check_ready(self, key: Key, runtime: Runtime, now: float) -> None:
        assert runtime.start is not None and runtime.process is not None
        runtime.port = find_port(key.kind, runtime.start, runtime.process)
        if runtime.port is not None:
            runtime.reason = RUNNING
            self._files.add_event(key, warning=False, reason="Started", message="It is running.")
        elif now - runtime.began > _STABLE_SECONDS:
            runtime.reason = NOT_READY

    def _terminate(self, runtime: Runtime, now: float) -> None:
        assert runtime.process is not None
        runtime.port = None
        if runtime.terminate_at is None:
            runtime.terminate_at = now + _TERMINATE_SECONDS
            runtime.process.terminate()
        elif now >= runtime.terminate_at and not runtime.killed:
            runtime.killed = True
            runtime.process.kill()

    def _observe_exit(self, key: Key, runtime: Runtime, now: float) -> None:
        process = runtime.process
        if process is None or (status := process.poll()) is None:
            return
        with suppress(KeyError):
            self._selector.unregister(process.output)
        self._selector.unregister(process.handle)
        process.close()
        end_orphans(f"{self._owner}/{runtime.uid}")
        intended = runtime.terminate_at is not None
        runtime.process, runtime.port, runtime.terminate_at = None, None, None
        if intended:
            runtime.retry_at = now
            self._files.add_event(key, warning=False, reason="Stopped", message="It was stopped.")
            return
        runtime.crashes = 1 if now - runtime.began > _STABLE_SECONDS else runtime.crashes + 1
        runtime.restarts += 1
        runtime.retry_at = now + min(2.0 ** (runtime.crashes - 1), _MAX_DELAY)
        runtime.reason = explain_exit(status, process.last_output)
        self._log_line(key, f"ended with status {status}")
        self._files.add_event(
            key, warning=True, reason=runtime.reason.name, message=runtime.reason.text
        )

    def _finish_deletion(self, key: Key) -> None:
        self._running.pop(key, None)
        self.log(key).delete()
        self._known_logs.pop(key, None)
        if key.kind == "Notebook":
            remove_root(self._roots / key.name)
        self._files.remove(key)

    def _reconcile_claims(self) -> None:
        """Bind new volumes, and delete those that are no longer used."""
        used = self._used_claims()
        for claim in self._files.list("PersistentVolumeClaim"):
            key = Key("PersistentVolumeClaim", NAMESPACE, name_of(claim))
            if not is_deleting(claim):
                self._files.write_status(key, uid_of(claim), self._volumes.bound_status(claim))
            elif key.name not in used:
                try:
                    self._volumes.delete(claim)
                    self._files.remove(key)
                except OSError as error:
                    text = f"Its directory cannot be deleted: {error.strerror or error}."
                    self._files.add_event(key, warning=True, reason="CannotDelete", message=text)

    def _used_claims(self) -> set[str]:
        """The volumes of processes that run."""
        used: set[str] = set()
        for key, runtime in list(self._running.items()):
            if runtime.process is not None:
                with suppress(Exception):
                    used |= claims_used_by(self._files.get(key))
        return used

    def _log_line(self, key: Key, text: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with suppress(OSError):
            self.log(key).append(f"--- {stamp} {text}\n".encode())

    def _stop_all(self) -> None:
        processes = [runtime.process for runtime in self._running.values() if runtime.process]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for process in processes:
            self._wait_for_end(process, deadline)
        late = [process for process in processes if process.poll() is None]
        for process in late:
            process.kill()
        deadline = time.monotonic() + _KILL_SECONDS
        for process in late:
            self._wait_for_end(process, deadline)
        for process in processes:
            process.close()
        if processes:
            end_orphans(self._owner)

    def _wait_for_end(self, process: ChildProcess, deadline: float) -> None:
        while process.poll() is None and time.monotonic() < deadline:
            process.read_output()
            select.select([process.handle, process.output], [], [], _POLL_SECONDS)
