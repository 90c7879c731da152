"""The stock `kfp` command against a real server."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from tests.driver import Project
from tests.local.programs.compiling import HERE
from tests.local.server import Server, run_server
from tests.wait import wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kfp.cli.cli import cli

pytestmark = pytest.mark.filterwarnings("ignore")
Kfp = Callable[..., Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(Project(tmp_path_factory.mktemp("kfp")), "--runs", "2") as found:
        yield found


def _kfp(*words: str, status: int = 0) -> str:
    """What one command prints. It runs in this process: to import kfp for each takes seconds."""
    ran = CliRunner().invoke(cli, words, obj={}, input="y\n" * 3)
    assert ran.exit_code == status, ran.output
    return ran.output + str(ran.exception or "")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled by the same command."""
    target = str(tmp_path_factory.mktemp("compiled") / "adding.yaml")
    source = str(HERE / "asked.py")
    _kfp("dsl", "compile", "--py", source, "--function", "adding", "--output", target)
    return target


@pytest.fixture
def kfp(server: Server) -> Kfp:
    """Run one command against the server; returns its output, parsed unless it is a table."""

    def run(*words: str, table: bool = False, status: int = 0) -> Any:
        form = [] if table else ["--output", "json"]
        common = ["--endpoint", server.address, "--existing-token", server.token, *form]
        output = _kfp(*common, *words, status=status)
        return output if table or status else _last(output)

    return run


def _last(said: str) -> Any:
    """The document that the command prints, after what it says besides."""
    lines = said.splitlines()
    for start, line in enumerate(lines):
        if line.startswith(("{", "[")):
            return json.loads("\n".join(lines[start:]))
    return said


def test_pipelines(kfp: Kfp, package: str) -> None:
    made = kfp("pipeline", "create", "-p", "book", "-d", "to read", package)
    assert (made["display_name"], made["name"]) == ("book", "book")
    which = made["pipeline_id"]
    second = kfp("pipeline", "create-version", "-v", "second", "-p", which, package)
    assert second["display_name"] == "second"
    assert [one["name"] for one in kfp("pipeline", "list")] == ["book"]
    assert kfp("pipeline", "get", which)["description"] == "to read"
    listed = kfp("pipeline", "list-versions", which)
    assert [one["name"] for one in listed] == ["second", "book"]
    version = kfp("pipeline", "get-version", which, second["pipeline_version_id"])
    assert version["pipeline_spec"]["pipelineInfo"]["name"] == "adding"
    assert "book" in kfp("pipeline", "list", table=True)
    assert "versions" in kfp("pipeline", "delete", which, status=1)
    for one in listed:
        said = kfp("pipeline", "delete-version", which, one["pipeline_version_id"], table=True)
        assert "deleted" in said
    assert "deleted" in kfp("pipeline", "delete", which, table=True)
    assert kfp("pipeline", "list") == []


def test_runs_and_experiments(kfp: Kfp, package: str) -> None:
    experiment = kfp("experiment", "create", "-d", "to see", "sums")
    assert experiment["description"] == "to see"
    words = ["run", "create", "-e", "sums", "-r", "first", "-f", package, "a=40"]
    assert "SUCCEEDED" in kfp(*words, "-w", table=True)
    (listed,) = kfp("run", "list", "-e", experiment["experiment_id"])
    run = kfp("run", "get", listed["run_id"])
    assert (run["display_name"], run["state"]) == ("first", "SUCCEEDED")
    assert run["runtime_config"]["parameters"] == {"a": 40}
    assert kfp("run", "archive", listed["run_id"])["storage_state"] == "ARCHIVED"
    assert kfp("run", "unarchive", listed["run_id"])["storage_state"] == "AVAILABLE"
    assert "first" in kfp("run", "list", table=True)
    assert "deleted" in kfp("run", "delete", listed["run_id"], table=True)
    assert kfp("run", "list") == []
    which = experiment["experiment_id"]
    assert kfp("experiment", "get", which)["display_name"] == "sums"
    assert [one["display_name"] for one in kfp("experiment", "list")] == ["sums"]
    by_id = ("--experiment-id", which)
    kfp("experiment", "archive", *by_id)
    assert kfp("experiment", "get", which)["storage_state"] == "ARCHIVED"
    kfp("experiment", "unarchive", *by_id)
    assert kfp("experiment", "get", which)["storage_state"] == "AVAILABLE"
    assert "deleted" in kfp("experiment", "delete", which, table=True)
    assert "404" in kfp("experiment", "get", which, status=1)


@pytest.fixture
def ran(server: Server) -> Callable[[str], str]:
    """How the first run of a schedule ended."""

    def ended(schedule: str) -> str:
        key = {"key": "recurring_run_id", "operation": "EQUALS", "stringValue": schedule}
        asked = {"filter": json.dumps({"predicates": [key]}), "page_size": "1"}

        def state() -> str | None:
            found = client.get("/apis/v2beta1/runs", params=asked).json().get("runs", [{}])[0]
            return found["state"] if found.get("finished_at") else None

        with server.client() as client:
            return str(wait_until("the end of the run", state))

    return ended


def test_recurring_runs(kfp: Kfp, package: str, ran: Callable[[str], str]) -> None:
    common = ["recurring-run", "create", "--experiment-name", "later"]
    what = ["--pipeline-package-path", package]
    made = kfp(*common, "--job-name", "yearly", "--cron-expression", "0 0 0 1 1 *", *what, "a=5")
    assert made["trigger"]["cron_schedule"]["cron"] == "0 0 0 1 1 *"
    # It sends texts, whatever the type; the runs read them by theirs.
    assert made["runtime_config"]["parameters"] == {"a": "5"}
    often = kfp(*common, "--job-name", "daily", "--interval-second", "86400", "--disabled", *what)
    assert (often["status"], often["max_concurrency"]) == ("DISABLED", "1")
    assert often["trigger"]["periodic_schedule"]["interval_second"] == "86400"
    soon = kfp(*common, "--job-name", "soon", "--interval-second", "1", "--enabled", *what, "a=5")
    assert ran(soon["recurring_run_id"]) == "SUCCEEDED"
    kfp("recurring-run", "delete", soon["recurring_run_id"], table=True)
    listed = kfp("recurring-run", "list")
    assert [one["display_name"] for one in listed] == ["daily", "yearly"]
    which = made["recurring_run_id"]
    kfp("recurring-run", "disable", which)
    assert kfp("recurring-run", "get", which)["status"] == "DISABLED"
    kfp("recurring-run", "enable", which)
    assert kfp("recurring-run", "get", which)["status"] == "ENABLED"
    for one in (which, often["recurring_run_id"]):
        assert "deleted" in kfp("recurring-run", "delete", one, table=True)
    assert kfp("recurring-run", "list") == []
    wrong = [*common, "--job-name", "never", "--cron-expression", "0 0 * * *", *what]
    assert "five fields" in kfp(*wrong, status=1)
