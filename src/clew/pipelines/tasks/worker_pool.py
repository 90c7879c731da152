"""Workers: recorded Python processes with the kfp SDK loaded, which fork one process per task.

There is one worker for each interpreter and each set of variables, so that a task sees what it
would see if it were started by itself. A worker whose input files have changed is replaced.
"""

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from clew.errors import ClewError
from clew.project_directory import ProjectDirectory
from clew.prov.locators import decode_text
from clew.redaction import Redactor
from clew.replay.reuse.reuse_types import TaskVariables
from clew.run.launch import inherited_env
from clew.run.launch.execution_host import LocalHost
from clew.run.session.forked_task import ForkedTask
from clew.run.session.worker_session import WorkerSession
from clew.settings import Settings

SDK_VARIABLES = {"_KFP_RUNTIME": "true"}
"""Variables of every lightweight component: the SDK then loads only what a task needs."""
LAUNCHER = Path(__file__).with_name("launcher.py")
_MAX_TASKS = 200
"""Tasks per worker. A worker keeps what it knows of their files, so it is replaced to free that."""
_TERMINAL_VARIABLES = frozenset(
    {
        "_", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION",
        "TERM_SESSION_ID", "COLORTERM", "LS_COLORS", "WINDOWID", "SSH_CLIENT", "SSH_CONNECTION",
        "SSH_TTY", "XDG_SESSION_ID", "STY", "TMUX", "TMUX_PANE",
    }
)  # fmt: skip
"""Variables of the caller's terminal. Tasks do not get them, so none can depend on them."""


class WorkerPool:
    """The workers of one run."""

    def __init__(self, directory: ProjectDirectory, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._workers: dict[tuple[str, frozenset[tuple[str, str]]], WorkerSession] = {}
        self._task_variables: dict[frozenset[tuple[str, str]], TaskVariables] = {}
        self._leaving: list[WorkerSession] = []
        self.lock = threading.Lock()
        """Hold it from `acquire` until the worker has the task."""

    @staticmethod
    def command(python: str) -> tuple[str, ...]:
        return python, os.fspath(LAUNCHER)

    def task_variables(self, variables: Mapping[str, str]) -> TaskVariables:
        """All variables of a task, redacted as they are recorded."""
        key = frozenset(variables.items())
        found = self._task_variables.get(key)
        if found is None:
            host = create_host(self._settings, variables)
            redactor = Redactor(host.environ, self._settings.redact, key=self._directory.key)
            decoded = {decode_text(n): decode_text(v) for n, v in host.environ.items()}
            found = TaskVariables(redactor.environment(decoded), redactor.seals(decoded))
            self._task_variables[key] = found
        return found

    def acquire(self, python: str, variables: Mapping[str, str]) -> WorkerSession:
        """A worker that can take another task; starts one if needed."""
        key = (python, frozenset(variables.items()))
        found = self._workers.get(key)
        if found is not None and not found.is_ready:
            del self._workers[key]
            found.await_ready()
            self._workers[key] = found
        if found is None or found.ended or found.count >= _MAX_TASKS:
            found = self._replace_worker(python, variables)
        return found

    def send(
        self,
        python: str,
        variables: Mapping[str, str],
        send: Callable[[WorkerSession, bool], ForkedTask | None],
    ) -> tuple[WorkerSession, ForkedTask]:
        """Send a task to a worker, or to a new one if its input files have changed. The flag says
        that the worker has just read them."""
        session = self.acquire(python, variables)
        task = send(session, False)
        if task is None:
            session = self._replace_worker(python, variables)
            task = send(session, True)
        assert task is not None
        return session, task

    def _replace_worker(self, python: str, variables: Mapping[str, str]) -> WorkerSession:
        key = (python, frozenset(variables.items()))
        found = self._start_worker(python, variables)
        found.await_ready()
        with suppress(KeyError):
            self._leaving.append(self._workers.pop(key))
        self._workers[key] = found
        return found

    def start(self, python: str, variables: Mapping[str, str]) -> None:
        """Start a worker that will probably be needed, without waiting for it."""
        with suppress(ClewError, OSError):
            self._workers[python, frozenset(variables.items())] = self._start_worker(
                python, variables
            )

    def prepare(self, python: str, variables: Mapping[str, str]) -> None:
        """Wait for a worker. An error here is ignored: the task will meet and report it."""
        with self.lock, suppress(ClewError, OSError):
            found = self._workers.get((python, frozenset(variables.items())))
            if found is None or not found.is_ready:
                self.acquire(python, variables)

    def _start_worker(self, python: str, variables: Mapping[str, str]) -> WorkerSession:
        host = create_host(self._settings, variables)
        found = WorkerSession(self._directory, self._settings, self.command(python), host, "worker")
        found.start()
        return found

    def set_redaction(self, directory: ProjectDirectory, settings: Settings) -> None:
        """Use the directory and settings that keep the secrets of a run out of the record."""
        self._directory, self._settings = directory, settings

    def release(self) -> list[WorkerSession]:
        """Take all workers out of the pool: they get no more tasks."""
        found = self.all()
        self._leaving.clear()
        self._workers.clear()
        return found

    def close(self) -> None:
        """End the workers that were not released, without recording them."""
        for worker in self.release():
            worker.close()
            worker.discard()

    def pop_finished(self) -> list[WorkerSession]:
        """Take the replaced workers whose tasks are all recorded."""
        found = [worker for worker in self._leaving if not worker.unrecorded]
        self._leaving = [worker for worker in self._leaving if worker.unrecorded]
        return found

    def check_tasks(self) -> None:
        """Detect tasks that ended without a notification."""
        for worker in self.all():
            worker.check_tasks()

    def all(self) -> list[WorkerSession]:
        return [*self._leaving, *self._workers.values()]


def create_host(settings: Settings, variables: Mapping[str, str]) -> LocalHost:
    """This machine with the variables of a task."""
    host = LocalHost(settings)
    host.environ = task_environment(variables)
    return host


def task_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables except those of the terminal, and the task's own."""
    callers = inherited_env.restore_caller_environment().items()
    kept = {name: value for name, value in callers if name not in _TERMINAL_VARIABLES}
    return {**kept, **variables}
