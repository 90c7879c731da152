"""Workers: witnessed Pythons that have the kfp SDK loaded, and fork a process for each task.

There is one for each Python and each set of variables, so that a task finds exactly what it would
find if it were started by itself. A worker is asked for work only while all that it read is as it
was; else another one takes its place.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from clew.errors import ClewError
from clew.project_directory import ProjectDirectory
from clew.prov.text import decode_text
from clew.redaction import Redactor
from clew.replay.reuse.reuse_types import TaskVariables
from clew.run.launch import inherited_env
from clew.run.launch.execution_backend import LocalHost
from clew.run.session.worker_session import WorkerSession
from clew.settings import Settings

SDK_VARIABLES = {"_KFP_RUNTIME": "true"}
"""What every lightweight component finds: it makes the SDK load what a task needs, and no more."""
LAUNCHER = Path(__file__).with_name("launcher.py")
_MAX_TASKS = 200
"""Tasks of one worker: what is known of their files is kept as long as it lives."""
_TERMINAL_VARIABLES = frozenset(
    {
        "_", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION",
        "TERM_SESSION_ID", "COLORTERM", "LS_COLORS", "WINDOWID", "SSH_CLIENT", "SSH_CONNECTION",
        "SSH_TTY", "XDG_SESSION_ID", "STY", "TMUX", "TMUX_PANE",
    }
)  # fmt: skip
"""Variables that tell of the terminal: no task has them, so none can depend on them."""


class WorkerPool:
    """Those of one run."""

    def __init__(self, directory: ProjectDirectory, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._at_work: dict[tuple[str, frozenset[tuple[str, str]]], WorkerSession] = {}
        self._surroundings: dict[frozenset[tuple[str, str]], TaskVariables] = {}
        self._leaving: list[WorkerSession] = []
        self.lock = threading.Lock()
        """Held by whoever asks for a worker, until it has its task."""

    @staticmethod
    def command(python: str) -> tuple[str, ...]:
        return python, os.fspath(LAUNCHER)

    def surroundings(self, variables: Mapping[str, str]) -> TaskVariables:
        """What a task with these variables of its own finds, as it is recorded."""
        key = frozenset(variables.items())
        found = self._surroundings.get(key)
        if found is None:
            stage = create_host(self._settings, variables)
            redactor = Redactor(stage.environ, self._settings.redact, key=self._directory.key)
            told = {decode_text(name): decode_text(value) for name, value in stage.environ.items()}
            found = TaskVariables(redactor.environment(told), redactor.seals(told))
            self._surroundings[key] = found
        return found

    def ready(self, python: str, variables: Mapping[str, str]) -> WorkerSession:
        """One that can take another task."""
        key = (python, frozenset(variables.items()))
        found = self._at_work.get(key)
        if found is not None and not found.is_ready:
            del self._at_work[key]
            found.await_ready()
            self._at_work[key] = found
        if found is None or found.ended or found.count >= _MAX_TASKS or found.stale() is not None:
            found = self._started(python, variables)
            found.await_ready()
            with suppress(KeyError):
                self._leaving.append(self._at_work.pop(key))
            self._at_work[key] = found
        return found

    def start(self, python: str, variables: Mapping[str, str]) -> None:
        """Start a worker that will probably be needed, and do not wait for it."""
        with suppress(ClewError, OSError):
            self._at_work[python, frozenset(variables.items())] = self._started(python, variables)

    def prepare(self, python: str, variables: Mapping[str, str]) -> None:
        """Have one ready. What prevents that prevents the task, too, which says so."""
        with self.lock, suppress(ClewError, OSError):
            found = self._at_work.get((python, frozenset(variables.items())))
            if found is None or not found.is_ready:
                self.ready(python, variables)

    def _started(self, python: str, variables: Mapping[str, str]) -> WorkerSession:
        stage = create_host(self._settings, variables)
        found = WorkerSession(
            self._directory, self._settings, self.command(python), stage, "worker"
        )
        found.start()
        return found

    def guard(self, directory: ProjectDirectory, settings: Settings) -> None:
        """What workers with variables of their own must keep out of the record."""
        self._directory, self._settings = directory, settings

    def release(self) -> list[WorkerSession]:
        """All of them: they get no more tasks."""
        found = self.all()
        self._leaving.clear()
        self._at_work.clear()
        return found

    def close(self) -> None:
        """End those that were not released; nothing of them is recorded."""
        for worker in self.release():
            worker.close()
            worker.discard()

    def done(self) -> list[WorkerSession]:
        """Those that will get no more tasks, and of which all is told but their own end."""
        found = [worker for worker in self._leaving if not worker.unrecorded]
        self._leaving = [worker for worker in self._leaving if worker.unrecorded]
        return found

    def look(self) -> None:
        """Whether tasks are gone of which nobody will hear."""
        for worker in self.all():
            worker.look()

    def all(self) -> list[WorkerSession]:
        return [*self._leaving, *self._at_work.values()]


def create_host(settings: Settings, variables: Mapping[str, str]) -> LocalHost:
    """This machine, as every task finds it."""
    stage = LocalHost(settings)
    stage.environ = task_environment(variables)
    return stage


def task_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The caller's variables without those of the terminal, and those of the task."""
    callers = inherited_env.caller_environment().items()
    kept = {name: value for name, value in callers if name not in _TERMINAL_VARIABLES}
    return {**kept, **variables}
