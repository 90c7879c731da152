"""The stock `kfp` command, as a process, against a server that really runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.programs.compiling import HERE
from tests.local.server import Server, run_server

KFP = Path(sys.executable).with_name("kfp")
Kfp = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def server(project: Project) -> Iterator[Server]:
    with run_server(project, "--runs", "2") as found:
        yield found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled by the same command."""
    target = tmp_path_factory.mktemp("compiled") / "adding.yaml"
    words = ["dsl", "compile", "--py", HERE / "asked.py", "--function", "adding"]
    subprocess.run([KFP, *words, "--output", target], check=True, capture_output=True)
    return str(target)


@pytest.fixture
def kfp(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kfp:
    """One command; what it says, read where it is JSON."""
    home = tmp_path_factory.mktemp("home")

    def run(*words: str, table: bool = False, status: int = 0) -> Any:
        form = [] if table else ["--output", "json"]
        common = ["--endpoint", server.address, "--existing-token", server.token, *form]
        ran = subprocess.run(
            [KFP, *common, *words],
            env={**os.environ, "HOME": str(home), "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            input="y\n" * 3,
            text=True,
            timeout=120,
        )
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr if table or status else _last(ran.stdout)

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
        until = time.monotonic() + 120
        with server.client() as client:
            while time.monotonic() < until:
                found = client.get("/apis/v2beta1/runs", params=asked).json().get("runs", [{}])[0]
                if found.get("finished_at"):
                    return str(found["state"])
                time.sleep(0.1)
        return "it never ended"

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
