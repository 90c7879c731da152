"""The stock `kfp` command against a real server: every group of commands works.

`test_server_kfp_client` proves what the answers say.
"""

import json
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from tests.local.programs.compiling import HERE
from tests.local.server import Server
from tests.wait import wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kfp.cli.cli import cli

pytestmark = pytest.mark.filterwarnings("ignore")
Kfp = Callable[..., Any]


def _kfp(*words: str) -> str:
    """What one command prints. It runs in this process: to import kfp for each takes seconds."""
    ran = CliRunner().invoke(cli, words, obj={}, input="y\n" * 3)
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled by the same command."""
    target = str(tmp_path_factory.mktemp("compiled") / "adding.yaml")
    source = str(HERE / "asked.py")
    _kfp("dsl", "compile", "--py", source, "--function", "adding", "--output", target)
    return target


@pytest.fixture
def kfp(server: Server) -> Kfp:
    """Run one command against the server; returns the first document that it prints, if any."""

    def run(*words: str) -> Any:
        common = ("--endpoint", server.address, "--existing-token", server.token)
        said = _kfp(*common, "--output", "json", *words)
        found = re.search(r"^[\[{]", said, re.MULTILINE)
        return json.JSONDecoder().raw_decode(said, found.start())[0] if found else None

    return run


def names(listed: Any) -> list[str]:
    return [one["display_name"] for one in listed]


def test_pipelines(kfp: Kfp, package: str) -> None:
    which = kfp("pipeline", "create", "-p", "by command", "-d", "to read", package)["pipeline_id"]
    second = kfp("pipeline", "create-version", "-v", "second", "-p", which, package)
    assert "by command" in names(kfp("pipeline", "list"))
    assert kfp("pipeline", "get", which)["description"] == "to read"
    listed = kfp("pipeline", "list-versions", which)
    assert names(listed) == ["second", "by command"]
    version = kfp("pipeline", "get-version", which, second["pipeline_version_id"])
    assert version["pipeline_spec"]["pipelineInfo"]["name"] == "adding"
    for one in listed:
        kfp("pipeline", "delete-version", which, one["pipeline_version_id"])
    kfp("pipeline", "delete", which)
    assert "by command" not in names(kfp("pipeline", "list"))


def test_runs_and_experiments(kfp: Kfp, package: str) -> None:
    which = kfp("experiment", "create", "-d", "to see", "commands")["experiment_id"]
    words = ["run", "create", "-e", "commands", "-r", "first", "-f", package, "a=40", "-w"]
    kfp(*words)
    (listed,) = kfp("run", "list", "-e", which)
    run = kfp("run", "get", listed["run_id"])
    assert (run["state"], run["runtime_config"]["parameters"]) == ("SUCCEEDED", {"a": 40})
    assert kfp("run", "archive", listed["run_id"])["storage_state"] == "ARCHIVED"
    assert kfp("run", "unarchive", listed["run_id"])["storage_state"] == "AVAILABLE"
    kfp("run", "delete", listed["run_id"])
    assert kfp("run", "list", "-e", which) == []
    assert "commands" in names(kfp("experiment", "list"))
    kfp("experiment", "archive", "--experiment-id", which)
    assert kfp("experiment", "get", which)["storage_state"] == "ARCHIVED"
    kfp("experiment", "unarchive", "--experiment-id", which)
    kfp("experiment", "delete", which)
    assert "commands" not in names(kfp("experiment", "list"))


def test_recurring_runs(kfp: Kfp, package: str) -> None:
    common = ["recurring-run", "create", "--experiment-name", "later"]
    given = ["--pipeline-package-path", package, "a=5"]
    yearly = kfp(*common, "--job-name", "yearly", "--cron-expression", "0 0 0 1 1 *", *given)
    # It sends texts, whatever the type; the runs read them by theirs.
    assert yearly["runtime_config"]["parameters"] == {"a": "5"}
    soon = kfp(*common, "--job-name", "soon", "--interval-second", "1", "--enabled", *given)
    listed = ("run", "list", "-e", soon["experiment_id"])
    wait_until("a run", lambda: "SUCCEEDED" in {one["state"] for one in kfp(*listed)})
    assert {"soon", "yearly"} <= set(names(kfp("recurring-run", "list")))
    which = yearly["recurring_run_id"]
    kfp("recurring-run", "disable", which)
    assert kfp("recurring-run", "get", which)["status"] == "DISABLED"
    kfp("recurring-run", "enable", which)
    for one in (yearly, soon):
        kfp("recurring-run", "delete", one["recurring_run_id"])
    assert not {"soon", "yearly"} & set(names(kfp("recurring-run", "list")))
