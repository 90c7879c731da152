"""Runs survive any outage of the database: no task runs twice, and all views agree."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import run_script
from tests.local.server import Server, run_server
from tests.local.test_cmd_pipeline import answer
from tests.local.test_postgres_failures import Server as PostgreSQL
from tests.local.test_postgres_failures import mortal  # noqa: F401 - a fixture
from tests.local.test_server_run_workers import Asking, gone
from tests.wait import wait_until

from clew.prov.events import Ended, from_batch
from clew.server.parsers.compiled_pipelines import normalize_text

PIPELINE = """
import sys

from kfp import compiler, dsl

@dsl.component(install_kfp_package=False)
def count(log: str, n: int) -> int:
    with open(log, "a") as file:
        file.write(f"{n}\\n")
    return n

@dsl.component(install_kfp_package=False)
def wait(log: str, gate: str, n: int) -> int:
    import os, time
    with open(gate + ".pid", "a") as file:
        file.write(f"{os.getpid()}\\n")
    while not os.path.exists(gate):
        time.sleep(0.01)
    with open(log, "a") as file:
        file.write(f"{n + 10}\\n")
    return n + 10

@dsl.container_component
def outside(log: str, n: int, out: dsl.Output[dsl.Artifact]):
    return dsl.ContainerSpec(
        image="example.org/any", command=["sh", "-c", 'echo $1 >> $0; echo $1 > $2'],
        args=[log, n, out.path],
    )

@dsl.pipeline(name="gated")
def gated(log: str, gate: str, n: int) -> int:
    one = count(log=log, n=n).set_caching_options(False)
    two = wait(log=log, gate=gate, n=one.output).set_caching_options(False)
    beside = outside(log=log, n=two.output)
    return count(log=log, n=two.output).set_caching_options(False).after(beside).output

compiler.Compiler().compile(gated, f"{sys.argv[1]}/gated.yaml")
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "source.py").write_text(PIPELINE)
    run_script(folder / "source.py", folder)
    file = folder / "gated.yaml"
    file.write_text(normalize_text(file.read_text()))  # as the server's routes keep it
    return folder


@pytest.fixture
def asking(tmp_path: Path, mortal: PostgreSQL, compiled: Path) -> Asking:  # noqa: F811
    project = Project(tmp_path, CLEW_GRAPH=mortal.address)
    return Asking(project, compiled, tmp_path / "log")


def survives(
    asking: Asking, outage: Callable[[Callable[[], None]], None], *servers: Server
) -> None:
    """Two runs, and an outage in which a task of each ends: `outage` is told how to let it."""
    gates = [Path(f"{asking.log}-gate-{n}") for n in (1, 2)]
    asked = [asking.gated(gate, n) for n, gate in enumerate(gates, 1)]
    tasks = [pid for gate in gates for pid in asking.waits(gate)]

    def let_them_end() -> None:
        for gate in gates:
            gate.touch()
        wait_until("the end of the tasks", lambda: all(map(gone, tasks)))

    outage(let_them_end)
    found = asking.over(*asked)
    assert [(one.state, one.error, one.tries) for one in found] == [("succeeded", None, 1)] * 2
    once = {"1", "2"}
    assert asking.counted() == {**dict.fromkeys(once, 1), "11": 3, "12": 3}, "no task ran twice"
    agree(asking, servers[0], asked, "succeeded")


def agree(asking: Asking, server: Server, asked: list[str], state: str) -> None:
    listed = {run["uid"]: run["state"] for run in answer(asking.project, "pipeline", "list")}
    assert {listed[run] for run in asked} == {state}
    with server.client() as client:
        for run in asked:
            ours = client.get(f"/api/v1/runs/{run}").json()
            assert (ours["state"], ours["error"]) == (state, None)
            kfp = client.get(f"/apis/v2beta1/runs/{run}").json()
            assert kfp["state"] == state.upper()


def test_lost_connections_and_a_restart(asking: Asking, mortal: PostgreSQL) -> None:  # noqa: F811
    def outage(let_them_end: Callable[[], None]) -> None:
        mortal.cut()
        let_them_end()
        mortal.restart()

    with run_server(asking.project, "--runs", "2", "--on-host") as server:
        survives(asking, outage, server)


def ends(kept: Path) -> set[str]:
    """The activities whose ends are kept."""
    events = [one for file in kept.glob("*.*[0-9]") for one in from_batch(file.read_bytes())]
    return {one.activity for one in events if isinstance(one, Ended)}


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.heavy)]
)
def test_a_server_that_ends_while_the_database_is_away(
    asking: Asking,
    mortal: PostgreSQL,  # noqa: F811
    number: signal.Signals,
) -> None:
    """What was done meanwhile is known to the next server."""
    gate = Path(f"{asking.log}-gate")
    with run_server(asking.project, "--runs", "1", "--on-host") as server:
        run = asking.gated(gate)
        (task,) = asking.waits(gate)
        mortal.die()
        gate.touch()
        wait_until("the end of the task", lambda: gone(task))
        kept = asking.project / ".clew/pending"
        wait_until("its end, kept", lambda: f"{run}/wait" in ends(kept))
        server.process.send_signal(number)
        server.process.wait()
    mortal.start()
    with asking.graph() as graph:  # so that nobody need wait for the end of the lease
        graph.connection.rows("UPDATE run_request SET lease = 0 WHERE id = ?", (run,))
    with run_server(asking.project, "--runs", "1", "--on-host") as server:
        (found,) = asking.over(run)
        assert (found.state, found.error) == ("succeeded", None)
        assert asking.counted() == {"1": 1, "11": 3}, "no task ran twice"
        agree(asking, server, [run], "succeeded")
    assert list(kept.iterdir()) == []


def test_connections_that_are_lost_again_and_again(
    asking: Asking,
    mortal: PostgreSQL,  # noqa: F811
) -> None:
    gate = Path(f"{asking.log}-gate")
    gate.touch()
    with run_server(asking.project, "--runs", "2", "--on-host") as server:
        asked = [asking.gated(gate, n) for n in range(100, 104)]
        for _ in range(40):
            mortal.cut()
            time.sleep(0.1)  # the moments of the cuts are what is being varied
        found = asking.over(*asked)
        assert [(one.state, one.error) for one in found] == [("succeeded", None)] * 4
        assert asking.counted() == {
            **{str(n): 1 for n in range(100, 104)},
            **{str(n): 3 for n in range(110, 114)},
        }
        agree(asking, server, asked, "succeeded")


@pytest.mark.parametrize("seconds", [5, pytest.param(25, marks=pytest.mark.heavy)])
def test_a_database_that_is_away(
    asking: Asking,
    mortal: PostgreSQL,  # noqa: F811
    seconds: float,
) -> None:
    """25 s: longer than a lease. Two servers: nobody takes a run from its holder."""

    def outage(let_them_end: Callable[[], None]) -> None:
        mortal.die()
        until = time.monotonic() + seconds
        let_them_end()
        while time.monotonic() < until:
            time.sleep(0.1)
        mortal.start()

    with (
        run_server(asking.project, "--runs", "2", "--on-host") as server,
        run_server(asking.project, "--runs", "2", "--on-host") as other,
    ):
        survives(asking, outage, server, other)


def test_one_of_two_servers_loses_its_database(
    asking: Asking,
    mortal: PostgreSQL,  # noqa: F811
    tmp_path: Path,
) -> None:
    """The other server sees the lease end, and leaves the run to the process that performs it."""
    gate, quick = Path(f"{asking.log}-gate"), Path(f"{asking.log}-open")
    quick.touch()
    way = tmp_path / ".s.PGSQL.5432"
    way.symlink_to(f"{mortal.home}/.s.PGSQL.5432")
    alone = f"host={tmp_path} user=clew dbname=postgres application_name=alone"
    with run_server(asking.project, "--runs", "1", "--on-host", "--graph", alone):
        run = asking.gated(gate)
        (task,) = asking.waits(gate)
        with run_server(asking.project, "--runs", "1", "--on-host") as other:
            way.unlink()
            mortal.cut("application_name = 'alone'")
            with asking.graph() as graph:  # so that nobody need wait for the end of the lease
                graph.connection.rows("UPDATE run_request SET lease = 0 WHERE id = ?", (run,))
            for n in (5, 6):  # the other server looks at ended leases before it takes these
                (found,) = asking.over(asking.gated(quick, n))
                assert found.state == "succeeded"
            way.symlink_to(f"{mortal.home}/.s.PGSQL.5432")
            gate.touch()
            (found,) = asking.over(run)
            assert (found.state, found.error, found.tries) == ("succeeded", None, 1)
            assert asking.waits(gate) == [task], "no task started twice"
            agree(asking, other, [run], "succeeded")
