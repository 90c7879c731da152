"""What is prepared before a process starts, and when it counts as ready."""

import os
import socket
import sys
from pathlib import Path

import pytest
from tests.unit.workloads.local.resources import notebook

from clew.kube.workload_tokens import token_digest
from clew.workloads.local.processes.child_process import ChildProcess
from clew.workloads.local.processes.launch_plan import LaunchPlan
from clew.workloads.local.processes.process_log import ProcessLog
from clew.workloads.local.processes.start_preparation import (
    Start,
    find_port,
    make_root,
    prepare_start,
    remove_root,
)

PLAN = LaunchPlan(
    command=(sys.executable, "--port={port}", "{digest}"),
    directory=Path("/"),
    environment={"CLEW_ACCESS_SHA256": "{digest}", "MINE": "{port}"},
)
RESOURCE = {**notebook(), "metadata": {"name": "first", "uid": "u", "generation": 3}}


def prepare(tmp_path: Path) -> Start:
    return prepare_start(
        PLAN, RESOURCE, roots=tmp_path / "roots", runtime=tmp_path / "runtime", owner="p"
    )


def test_each_start_has_a_token_of_its_own_and_the_child_its_digest(tmp_path: Path) -> None:
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "port").write_text("1")
    first, second = prepare(tmp_path), prepare(tmp_path)
    assert first.token != second.token
    digest = token_digest(second.token)
    assert second.command == (sys.executable, f"--port={second.port}", digest)
    assert second.environment["CLEW_ACCESS_SHA256"] == digest
    assert second.environment["MINE"] == "{port}", "variables of users stay as they are"
    assert second.environment["CLEW_WORKLOAD"] == "p/u"
    assert second.token not in second.environment.values()
    assert list((tmp_path / "runtime").iterdir()) == [], "nothing is left of the last start"


def test_a_notebook_is_ready_when_its_user_listens_on_its_port(tmp_path: Path) -> None:
    start = prepare(tmp_path)
    process = ChildProcess(["true"], environment={}, directory=tmp_path, log=ProcessLog(tmp_path))
    process.terminate()
    assert find_port("Notebook", start, process) is None
    with socket.create_server(("127.0.0.1", start.port)):
        assert find_port("Notebook", start, process) == start.port
        if os.geteuid() == 0:  # the listener is another user's
            os.seteuid(65534)
            try:
                assert find_port("Notebook", start, process) is None
            finally:
                os.seteuid(0)
    assert find_port("Notebook", start, process) is None
    process.kill()
    process.close()


@pytest.mark.parametrize("text", ["", "x", "{}"])
def test_a_damaged_port_file_is_no_port(tmp_path: Path, text: str) -> None:
    start = prepare(tmp_path)
    process = ChildProcess(["true"], environment={}, directory=tmp_path, log=ProcessLog(tmp_path))
    (start.runtime / "port").write_text(text)
    assert find_port("Tensorboard", start, process) is None
    process.kill()
    process.close()


def test_the_root_of_a_notebook_is_made_again_and_files_in_it_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "roots" / "first"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").touch()
    make_root(root, {"a": tmp_path / "a"})
    assert root.stat().st_mode & 0o777 == 0o500
    root.chmod(0o700)
    (root / "saved.ipynb").touch()
    make_root(root, {"b": tmp_path / "a"})
    assert sorted(path.name for path in root.iterdir()) == ["b", "saved.ipynb"]
    remove_root(root)
    assert [path.name for path in root.iterdir()] == ["saved.ipynb"]
    assert (tmp_path / "a" / "x").exists(), "what the links lead to is kept"
    remove_root(tmp_path / "missing")
