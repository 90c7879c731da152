"""A repeat that is killed, has no room, or misses bytes leaves everything as it was."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.surviving import Marked, as_root, await_, children, kill, mounted

WORKFLOW = "for i in 1 2 3; do cat in$i > mid$i; sort mid$i > out$i; rm mid$i; echo step $i; done"


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[Marked]:
    clew = Marked(tmp_path, **graph_in_turn)
    for number in (1, 2, 3):
        clew.write(f"in{number}", f"{number}\nb\na\n")
    clew.shell(WORKFLOW)
    yield clew
    clew.stop()


def as_before(clew: Marked) -> None:
    """No process and no leaving of the repeat is there, and no part of its record: it is there as
    a whole, if only the comparison was cut short, or not at all. The next one is as ever."""
    clew.await_silence()
    clew("exec", "--", "true")  # whoever comes next settles what the dead left
    assert set(clew.states().values()) == {"done"}
    for one in clew.json("list"):
        if one["kind"] == "repetition":
            assert clew.json("diff", "e1", one["id"])["verdict"] == "identical"
    assert clew.leftovers() == []
    clew.is_well()
    assert clew.json("repeat", "e1")["verdict"] == "identical"


@pytest.mark.parametrize("moment", range(6))
def test_killed_at_any_moment(clew: Marked, moment: int) -> None:
    clew.json("repeat", "e1")  # warm, so that the moments are spread over the run itself
    clew("rm", "e2", "--yes")
    begin = time.monotonic()
    clew.json("repeat", "e1")
    took = time.monotonic() - begin
    clew("rm", "e3", "--yes")
    process = clew.start("repeat", "e1")
    time.sleep(took * (moment + random.random()) / 6)
    kill(process)
    as_before(clew)


def test_the_sandbox_is_killed(clew: Marked) -> None:
    clew.shell("echo up; sleep 0.3")
    process = clew.start("repeat", "e2", stdout=subprocess.PIPE)
    await_("the sandbox", lambda: bool(children(process.pid)))
    for child in children(process.pid):
        subprocess.run(["kill", "-9", str(child)], check=False)
    process.communicate(timeout=60)
    assert process.returncode != 0
    clew.await_silence()
    assert {one["kind"] for one in clew.json("list")} == {"reference"}
    assert clew.leftovers() == []


def test_an_interrupt_ends_it(clew: Marked) -> None:
    clew.write("slow.sh", "echo up\nsleep 0.3\n")
    clew.shell("sh slow.sh")
    process = clew.start("repeat", "e2", stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode != 0
    clew.await_silence()
    clew("exec", "--", "true")
    assert {one["kind"] for one in clew.json("list")} == {"reference"}


def test_bytes_that_are_gone(clew: Marked) -> None:
    for pack in (clew.folder / ".clew/store/packs").glob("*.pack"):
        pack.write_bytes(b"")
    code, message, _ = clew.error("repeat", "e1", status=3)
    assert code == "damaged", message
    assert len(clew.json("list")) == 1
    assert clew.leftovers() == []


# -- no room

NOISE = 3 << 20


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Marked]:
    """A project on a small disk of its own, with a recorded command that writes twice NOISE."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64m", "none"):
        clew = Marked(tmp_path / "disk")
        (clew.folder / "noise").write_bytes(os.urandom(NOISE))
        clew.shell("cat noise > one; cat noise > two; echo done")
        yield clew
        clew.stop()


def leave(clew: Marked, room: int) -> Path:
    """Fill the disk up to so many bytes; what has to go to have them back."""
    ballast = clew.folder / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(clew.folder).free - room)
    return ballast


def unchanged(clew: Marked, ballast: Path) -> None:
    assert clew.states() == {"e1": "done"}
    assert clew.leftovers() == []
    ballast.unlink()
    clew.is_well()
    assert clew.json("repeat", "e1")["verdict"] == "identical"


@as_root
@pytest.mark.parametrize("room", [NOISE // 2, NOISE * 3 // 2])
def test_a_disk_that_the_command_fills(narrow: Marked, room: int) -> None:
    narrow.json("repeat", "e1")  # its files are laid out: only what it writes needs room
    narrow("rm", "e2", "--yes")
    ballast = leave(narrow, room)
    code, message, hint = narrow.error("repeat", "e1", status=1)
    assert (code, "no space" in message, "clew gc" in hint) == ("disk-full", True, True)
    unchanged(narrow, ballast)


@as_root
def test_no_room_for_the_files_it_needs(narrow: Marked) -> None:
    ballast = leave(narrow, NOISE // 2)
    code, message, _ = narrow.error("repeat", "e1", status=1)
    assert (code, "o space left" in message) == ("disk-full", True)
    unchanged(narrow, ballast)


@as_root
def test_no_room_to_begin(narrow: Marked) -> None:
    narrow.json("repeat", "e1")
    narrow("rm", "e2", "--yes")
    ballast = leave(narrow, 96 << 10)
    code, message, _ = narrow.error("repeat", "e1", status=125)
    assert (code, "no space left" in message) == ("recording-failed", True)
    unchanged(narrow, ballast)
