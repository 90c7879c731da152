"""One server at a time, and how others find it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import Busy
from clew.workloads.local.server_lock import RunningServer, ServerLock, find_running

SERVER = RunningServer("http://127.0.0.1:8100", "digest")
HOLD = """
import sys, time
from pathlib import Path
from clew.workloads.local.server_lock import RunningServer, ServerLock
lock = ServerLock(Path(sys.argv[1]))
lock.publish(RunningServer("http://127.0.0.1:1", "d"))
print("held", flush=True)
time.sleep(600)
"""


def test_only_one_server_holds_it_and_others_find_its_address(tmp_path: Path) -> None:
    lock = ServerLock(tmp_path / "lock")
    lock.publish(SERVER)
    with pytest.raises(Busy):
        ServerLock(tmp_path / "lock")
    assert find_running(tmp_path / "lock", 0) == SERVER
    lock.withdraw()
    assert find_running(tmp_path / "lock", 0) is None, "it is ending"
    lock.close()
    assert find_running(tmp_path / "lock", 0) is None
    ServerLock(tmp_path / "lock").close()


def test_it_goes_with_a_killed_server_and_so_does_the_address(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert find_running(tmp_path / "lock", 0) == RunningServer("http://127.0.0.1:1", "d")
        os.kill(process.pid, signal.SIGKILL)
    assert find_running(tmp_path / "lock", 0) is None
    lock = ServerLock(tmp_path / "lock")
    assert find_running(tmp_path / "lock", 0) is None, "the address is not that of this server"
    lock.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"address": 1}', "\0" * 5000])
def test_a_damaged_file_is_no_address(tmp_path: Path, text: str) -> None:
    lock = ServerLock(tmp_path / "lock")
    (tmp_path / "lock").write_text(text)
    assert find_running(tmp_path / "lock", 0) is None
    lock.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic"):
        ServerLock(tmp_path / "lock")
    assert (tmp_path / "mine").read_text() == "precious"


def test_only_its_user_can_read_it(tmp_path: Path) -> None:
    ServerLock(tmp_path / "lock").close()
    assert (tmp_path / "lock").stat().st_mode & 0o077 == 0
