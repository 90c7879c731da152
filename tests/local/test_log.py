"""`.clew/log` tells what Clew did when something went wrong, and stays silent otherwise."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project


@pytest.fixture
def clew(tmp_path: Path) -> Project:
    clew = Project(tmp_path)
    clew.write("data", "some data\n")
    return clew


def log(clew: Project) -> str:
    path = clew.folder / ".clew" / "log"
    return path.read_text() if path.exists() else ""


def test_a_success_is_not_logged(clew: Project) -> None:
    clew("exec", "--", "cat", "data")
    clew("list")
    assert log(clew) == ""


def test_errors_and_upkeep_are_logged(clew: Project) -> None:
    clew("exec", "--", "cat", "data")
    clew("show", "e9", status=5)
    clew("exec", "--", "no-such-program", status=127)
    clew("fsck")
    clew("rm", "e1", "--yes")
    clew("gc", "--yes")
    found = [line.split(" ", 2)[2] for line in log(clew).splitlines()]
    assert found[:3] == [
        "show error not-found: no execution e9",
        "exec error no-such-command: no such command: no-such-program",
        found[2],
    ]
    assert found[2].startswith("fsck info checked ")
    assert found[2].endswith(": 0 problems")
    assert found[3].startswith("rm info removed e1 (")
    assert found[4].startswith("gc info freed ")


BROKEN = """
import sys
from clew.cli import main
from clew.cli.commands import list
def break_(*_, **__): raise ValueError(f"a bug, with {open('data').read()!r}")
list.command.callback = break_
sys.argv[0] = "clew"
sys.exit(main.main())
"""


def test_a_bug_leaves_its_traceback(clew: Project) -> None:
    clew.environment["MY_SECRET"] = "some data"
    ran = subprocess.run(
        [sys.executable, "-c", BROKEN, "list", "--json"],
        cwd=clew.folder,
        env=clew.environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1
    assert '"code": "failed"' in ran.stdout
    assert f"the traceback is in {clew.folder / '.clew' / 'log'}" in ran.stdout
    (line,) = log(clew).splitlines()
    assert " list error Traceback" in line
    assert "ValueError: a bug, with '***" in line
    assert "some data" not in line


def test_a_failed_send_is_logged(clew: Project) -> None:
    with socket.socket() as taken:  # nobody listens there
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        clew.environment["CLEW_SERVER"] = address
        clew("exec", "--", "cat", "data")
    (line,) = log(clew).splitlines()
    assert " exec warning not sent to the server: " in line
