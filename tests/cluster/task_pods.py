"""Start Pods of tasks on the cluster under test, and wait for what becomes of them."""

import queue
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster.kube import CLEW, Kube
from tests.wait import TIMEOUT, wait_until
from tools.cluster.images import BUSYBOX

from clew.kube.backend.rest_client import RestClient
from clew.kube.tasks.outcome import PodOutcome
from clew.kube.tasks.pod_runner import PodRunner
from clew.kube.tasks.task_pod import RUN_LABEL, Helper, TaskPod, pod_name

RUN = "run-1"
MOVER = """
import fcntl, os, time
open("/clew/ready", "w").close()
while not os.path.exists("/clew/lock"):
    time.sleep(0.02)
with open("/clew/lock") as lock:
    fcntl.flock(lock, fcntl.LOCK_SH)
found = open("/clew/status").read() if os.path.exists("/clew/status") else "none"
open("/dev/termination-log", "w").write(f"status {found.strip()}")
"""
"""What the helper of a task does, without data: the inputs are there, and it waits for the end."""


def helper(script: str = MOVER) -> Helper:
    return Helper(image=CLEW, command=("python3", "-c", script))


class Started:
    """One Pod that was started."""

    def __init__(self, pod: TaskPod, log: Path) -> None:
        self.pod = pod
        self.name = pod.name
        self.log = log
        self.said: list[str] = []
        self._ends: queue.Queue[PodOutcome] = queue.Queue()

    def on_end(self, outcome: PodOutcome) -> None:
        self._ends.put(outcome)

    def end(self) -> PodOutcome:
        outcome = self._ends.get(timeout=TIMEOUT)
        assert self._ends.empty()
        return outcome

    def await_output(self, text: str) -> None:
        wait_until(text, lambda: self.log.exists() and text in self.log.read_text())

    def await_word(self, text: str) -> None:
        """Wait until it says why it waits."""
        wait_until(f"{text}, not {self.said}", lambda: any(text in said for said in self.said))


class Tasks:
    """The Pods of one run in the namespace of a test."""

    def __init__(
        self, kube: Kube, folder: Path, *, patience: float = 120.0, user: str | None = None
    ) -> None:
        """`user`: acts for this user, with the rights that this one has."""
        self.kube = kube
        self._folder = folder
        self._patience = patience
        self.client = RestClient({"Impersonate-User": user} if user else None)
        self.runner = self._open()

    def _open(self) -> PodRunner:
        return PodRunner(self.client, self.kube.namespace, RUN, patience=self._patience)

    def restart(self) -> None:
        """As if the process had been killed and started again: nothing is remembered."""
        self.runner.close()
        self.runner = self._open()

    def close(self) -> None:
        self.runner.close()
        self.client.close()

    def pod(self, task: str, *command: str, **settings: Any) -> TaskPod:
        given: dict[str, Any] = {
            "image": BUSYBOX,
            "pull_policy": "IfNotPresent",
            "helper": helper(),
            **settings,
        }
        name = pod_name(RUN, task, 1)
        namespace = self.kube.namespace
        return TaskPod(name=name, namespace=namespace, run=RUN, task=task, command=command, **given)

    def start(self, task: str, *command: str, **settings: Any) -> Started:
        """Start a Pod with this command; a command of one word is a script."""
        words = ("sh", "-c", *command) if len(command) == 1 else command
        pod = self.pod(task, *words, **settings)
        started = Started(pod, self._folder / f"{task}.log")
        self.runner.start(
            pod, log=started.log, on_end=started.on_end, on_progress=started.said.append
        )
        return started

    def names(self) -> list[str]:
        """The Pods of the run that exist."""
        listed = self.kube("get", "pods", "-l", f"{RUN_LABEL}={RUN}", "-o", "name")
        return listed.replace("pod/", "").split()

    def execute(self, started: Started, *command: str) -> None:
        self.kube("exec", started.name, "-c", "main", "--", *command)


WAIT = "until [ -e /tmp/go ]; do sleep 0.1; done"
"""A script that waits for `let_go`."""


def let_go(tasks: Tasks, started: Started) -> None:
    tasks.execute(started, "touch", "/tmp/go")


MakeTasks = Callable[..., Tasks]
