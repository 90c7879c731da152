"""Where the tasks of a run are performed: on this machine, or as Pods on a cluster.

The run loop knows only this protocol, so it carries out the engine's decisions in the same way
everywhere.
"""

from collections.abc import Mapping
from typing import Protocol

from clew.pipelines.engine.engine import StartTask
from clew.pipelines.engine.resources import Capacity
from clew.pipelines.engine.run_state import Node
from clew.pipelines.runner.task_reuse import Verdict
from clew.pipelines.tasks.attempt import Attempt, OnOutput
from clew.pipelines.tasks.volumes import TaskEnvironment
from clew.run.session.worker_session import WorkerSession


class TaskBackend(Protocol):
    """The tasks of one run. All methods are called from the thread of the run loop."""

    @property
    def capacity(self) -> Capacity: ...

    @property
    def facts(self) -> Mapping[str, str]:
        """The values of the placeholders that mean the run."""

    def begin(self) -> None:
        """Prepare what all tasks share."""

    def environment_for(
        self, node: Node, attempt: int, facts: Mapping[str, str]
    ) -> TaskEnvironment:
        """Resolve what a task gets from its platform settings; BadInput if something is missing."""

    def decide(self, node: Node, given: TaskEnvironment, *, reuse: bool) -> Verdict:
        """Decide whether to reuse an earlier task. `reuse`: whether that is allowed."""

    def create(self, task: StartTask, given: TaskEnvironment, on_output: OnOutput) -> Attempt:
        """An attempt to start; BadInput or VolumeError if it cannot."""

    def deadline_of(self, node: Node) -> int | None:
        """The time limit of a task, in seconds, that the run loop is to enforce."""

    def attempt_ended(self, attempt: Attempt) -> list[WorkerSession]:
        """Free what it held. Returns the worker processes that are not needed any more."""

    def check(self) -> None:
        """Detect attempts that ended without a notification; called several times a second."""

    def end(self) -> list[WorkerSession]:
        """No task will start any more. Returns the remaining worker processes, to be recorded."""

    def close(self) -> None:
        """Everything is recorded."""
