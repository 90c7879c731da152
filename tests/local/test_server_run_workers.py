"""Runs that a server was asked for: done once, whoever is killed, and with two servers."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.programs.compiling import run_script
from tests.local.server import Server, run_server
from tests.local.test_cmd_pipeline import answer
from tests.wait import wait_until

import clew
from clew import settings
from clew.api.local.project import LocalProject as Opened
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_states import FINAL_STATES
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import schedules

PIPELINE = """
import sys

from kfp import compiler, dsl

@dsl.component(install_kfp_package=False)
def count(log: str, n: int) -> int:
    with open(log, "a") as file:
        file.write(f"{n}\\n")
    return n

@dsl.component(install_kfp_package=False)
def wait(gate: str, n: int) -> int:
    import os, time
    with open(gate + ".pid", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while not os.path.exists(gate):
        time.sleep(0.01)
    return n + 1

@dsl.pipeline(name="gated")
def gated(log: str, gate: str, n: int = 1) -> int:
    one = count(log=log, n=n).set_caching_options(False)
    return wait(gate=gate, n=one.output).set_caching_options(False).output

@dsl.pipeline(name="counting")
def counting(log: str, n: int = 1):
    count(log=log, n=n).set_caching_options(False)

for one in (gated, counting):
    compiler.Compiler().compile(one, f"{sys.argv[1]}/{one.name}.yaml")
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pipelines, compiled by the stock SDK."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "source.py").write_text(PIPELINE)
    run_script(folder / "source.py", folder)
    return folder


class Asking:
    """Asks for runs as the server's routes do, through the database."""

    def __init__(self, project: Project, compiled: Path, log: Path) -> None:
        self.project = project
        self.compiled = compiled
        self.log = log

    @contextmanager
    def graph(self) -> Iterator[Graph]:
        folder = clew.open(self.project.folder).directory
        with Opened(folder, settings.load(self.project.environment)) as project:
            yield project.graph

    def ask(self, name: str, **parameters: Any) -> str:
        text = (self.compiled / f"{name}.yaml").read_text()
        asked = run_queue.NewRun(
            experiment="none", name=name, spec=text, config={"parameters": parameters}
        )
        with self.graph() as graph:
            return run_queue.queue_run(graph, asked)

    def gated(self, gate: Path, n: int = 1) -> str:
        return self.ask("gated", log=str(self.log), gate=str(gate), n=n)

    def get(self, run: str) -> run_queue.RunRequest:
        with self.graph() as graph:
            return run_queue.get_request(graph, run)

    def over(self, *wanted: str) -> list[run_queue.RunRequest]:
        """Those runs, once they are over."""
        with self.graph() as graph:
            wait_until(
                "a run's end",
                lambda: all(run_queue.get_request(graph, r).state in FINAL_STATES for r in wanted),
            )
            return [run_queue.get_request(graph, run) for run in wanted]

    def counted(self) -> Counter[str]:
        return Counter(self.log.read_text().split()) if self.log.exists() else Counter()

    def waits(self, gate: Path) -> list[int]:
        """The processes that have waited at a gate, in order, once there is one."""
        said = Path(f"{gate}.pid")
        wait_until("a task at its gate", lambda: said.exists() and said.read_text().endswith("\n"))
        return [int(line) for line in said.read_text().split()]


@pytest.fixture
def asking(project: Project, compiled: Path, tmp_path: Path) -> Asking:
    return Asking(project, compiled, tmp_path / "log")


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def done(asking: Asking, run: str) -> bool:
    """Whether the record says that the run's first task is done."""
    tasks = answer(asking.project, "pipeline", "show", run)["tasks"]
    return any(task["state"] == "succeeded" for task in tasks)


def runners(server: Server) -> list[int]:
    """The pids of its runners."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except OSError:
            continue
        if f"\nPPid:\t{server.process.pid}\n" in text:
            found.append(int(status.parent.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_resumes_when_the_server_restarts(
    asking: Asking, tmp_path: Path, number: signal.Signals
) -> None:
    gate = tmp_path / "gate"
    with run_server(asking.project, "--runs", "2") as server:
        run = asking.gated(gate)
        (task,) = asking.waits(gate)
        wait_until("the record of the first task", lambda: done(asking, run))
        server.process.send_signal(number)
        server.process.wait()
        wait_until("the end of the task", lambda: gone(task))
        assert asking.get(run).state in ("queued", "running")
    with run_server(asking.project, "--runs", "2"):
        wait_until("another try", lambda: len(asking.waits(gate)) == 2)
        gate.touch()
        (found,) = asking.over(run)
    assert found.state == "succeeded"
    assert asking.counted() == {"1": 1}, "what was done stays done"
    assert answer(asking.project, "pipeline", "show", run)["outputs"] == {"Output": 2}


def test_a_requested_run_is_resumed_by_the_command_line(asking: Asking, tmp_path: Path) -> None:
    """The command line, our routes and Kubeflow's routes then all show its result."""
    gate = tmp_path / "gate"
    with run_server(asking.project, "--runs", "1") as server, server.client() as client:
        run = asking.gated(gate)
        asking.waits(gate)
        wait_until("the record of the first task", lambda: done(asking, run))
        canceled = answer(asking.project, "pipeline", "cancel", run)
        assert (canceled["state"], asking.get(run).state) == ("canceled", "canceled")
        gate.touch()
        assert answer(asking.project, "pipeline", "resume", run)["state"] == "succeeded"
        (listed,) = answer(asking.project, "pipeline", "list")
        (shown,) = client.get("/api/v1/runs").json()["runs"]
        (kubeflow,) = client.get("/apis/v2beta1/runs").json()["runs"]
    assert (listed["state"], shown["state"]) == ("succeeded", "succeeded")
    assert (kubeflow["state"], kubeflow["run_id"]) == ("SUCCEEDED", listed["uid"])
    assert listed == shown
    assert asking.counted() == {"1": 1}, "the finished task did not run again"


def test_a_run_that_only_the_catalogue_takes_for_failed_can_be_retried(asking: Asking) -> None:
    with run_server(asking.project, "--runs", "2") as server, server.client() as client:
        run = asking.ask("counting", log=str(asking.log), n=7)
        asking.over(run)
        with asking.graph() as graph:  # as a server left it that lost the database at its end
            graph.connection.rows(
                "UPDATE run_request SET state = 'failed', error = 'lost', finished = ?"
                " WHERE id = ?",
                (time.time_ns(), run),
            )
        assert client.post(f"/apis/v2beta1/runs/{run}:retry").status_code == 200
        (found,) = asking.over(run)
    assert (found.state, found.error) == ("succeeded", None)
    assert asking.counted() == {"7": 1}


def test_files_left_by_a_killed_worker_do_not_matter(asking: Asking) -> None:
    run = asking.ask("counting", log=str(asking.log), n=7)
    left = asking.project / f".clew/spool/{run}"
    left.mkdir()
    for name in ("lock", "cancel"):
        (left / name).touch()
    with run_server(asking.project, "--runs", "2"):
        (found,) = asking.over(run)
    assert (found.state, found.error) == ("succeeded", None)
    assert asking.counted() == {"7": 1}


def test_a_run_resumes_when_its_worker_is_killed_until_it_is_given_up(
    asking: Asking, tmp_path: Path
) -> None:
    gate, other = tmp_path / "gate", tmp_path / "other"
    with run_server(asking.project, "--runs", "2") as server:
        run, doomed = asking.gated(gate), asking.gated(other, n=2)
        asking.waits(gate)
        wait_until("the record of the first task", lambda: done(asking, run))
        for tries in range(1, run_queue.MAX_TRIES + 1):
            wait_until("a try", lambda: len(asking.waits(other)) == tries)  # noqa: B023
            for pid in runners(server):
                os.kill(pid, signal.SIGKILL)
            if tries == 1:
                wait_until("another try", lambda: len(asking.waits(gate)) == 2)
                gate.touch()
                (found,) = asking.over(run)
        (lost,) = asking.over(doomed)
        last = asking.ask("counting", log=str(asking.log), n=3)
        assert asking.over(last)[0].state == "succeeded"
    assert (found.state, found.tries) == ("succeeded", 2)
    assert asking.counted()["1"] == 1, "the finished task is not repeated"
    assert (lost.state, lost.error) == ("failed", "given up: its worker was lost 3 times")


@pytest.fixture
def shared(tmp_path: Path, shared_graph: str, compiled: Path) -> Asking:
    """A project whose graph is in PostgreSQL."""
    return Asking(Project(tmp_path, CLEW_GRAPH=shared_graph), compiled, tmp_path / "log")


def test_two_servers_share_the_work_and_do_nothing_twice(shared: Asking) -> None:
    with run_server(shared.project, "--runs", "1"), run_server(shared.project, "--runs", "1"):
        asked = [shared.ask("counting", log=str(shared.log), n=n) for n in range(12)]
        found = shared.over(*asked)
    assert {one.state for one in found} == {"succeeded"}
    assert shared.counted() == {str(n): 1 for n in range(12)}


def ticks(asking: Asking, schedule: str) -> list[int]:
    """When the runs of a schedule were due, in seconds."""
    with asking.graph() as graph, closing(graph.connection):
        rows = graph.connection.rows(
            "SELECT scheduled FROM run_request WHERE schedule = ? ORDER BY scheduled", (schedule,)
        )
    return [int(row[0]) // 10**9 for row in rows]


def scheduled(asking: Asking, **more: Any) -> str:
    asked = schedules.NewSchedule(
        experiment="none",
        name="often",
        spec=(asking.compiled / "counting.yaml").read_text(),
        config={"parameters": {"log": str(asking.log)}},
        **more,
    )
    with asking.graph() as graph:
        return schedules.create(graph, asked)


def test_another_server_takes_over_the_runs_and_schedules_of_a_killed_one(
    shared: Asking, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with run_server(shared.project, "--runs", "1") as first:
        run = shared.gated(gate)
        shared.waits(gate)
        wait_until("the record of the first task", lambda: done(shared, run))
        schedule = scheduled(shared, interval=1, most=10)
        with run_server(shared.project, "--runs", "2"):
            wait_until("some ticks", lambda: len(ticks(shared, schedule)) >= 2)
            first.process.kill()
            before = len(ticks(shared, schedule))
            wait_until("more ticks", lambda: len(ticks(shared, schedule)) >= before + 2)
            wait_until("another try", lambda: len(shared.waits(gate)) == 2)
            gate.touch()
            (found,) = shared.over(run)
    assert found.state == "succeeded"
    down = time.time()
    with run_server(shared.project, "--runs", "2"):
        wait_until("a tick after that", lambda: (ticks(shared, schedule) or [0])[-1] > down + 2)
        with shared.graph() as graph:
            schedules.set_enabled(graph, schedule, enabled=False)
            rows = graph.connection.rows(
                "SELECT id FROM run_request WHERE schedule = ?", (schedule,)
            )
        asked = [str(row[0]) for row in rows]
        assert {one.state for one in shared.over(*asked)} == {"succeeded"}
    assert shared.counted() == {"1": 1 + len(asked)}
    seconds = ticks(shared, schedule)
    assert len(asked) == len(seconds)
    assert seconds == list(range(seconds[0], seconds[0] + len(seconds)))
