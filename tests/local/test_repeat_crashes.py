"""A repeat that is killed, has no room, or misses bytes leaves everything as it was."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.processes import TrackedProject, as_root, children, kill, mounted
from tests.wait import wait_until

WORKFLOW = "for i in 1 2 3; do cat in$i > mid$i; sort mid$i > out$i; rm mid$i; echo step $i; done"


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path, **graph_in_turn)
    for number in (1, 2, 3):
        clew.write(f"in{number}", f"{number}\nb\na\n")
    clew.shell(WORKFLOW)
    yield clew
    clew.stop()


def as_before(clew: TrackedProject) -> None:
    """No process and no leaving of the repeat is there, and no part of its record: it is there as
    a whole, if only the comparison was cut short, or not at all. The next one works as usual."""
    clew.wait_until_ended()
    clew("exec", "--", "true")  # whoever comes next settles what the dead left
    assert set(clew.states().values()) == {"done"}
    for one in clew.json("list"):
        if one["kind"] == "repetition":
            assert clew.json("diff", "e1", one["id"])["verdict"] == "identical"
    assert clew.leftovers() == []
    clew.assert_intact()
    assert clew.json("repeat", "e1")["verdict"] == "identical"


@pytest.mark.parametrize("moment", range(6))
def test_killed_at_any_moment(clew: TrackedProject, moment: int) -> None:
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


def test_the_sandbox_is_killed(clew: TrackedProject) -> None:
    clew.shell("echo up; sleep 0.3")
    process = clew.start("repeat", "e2", stdout=subprocess.PIPE)
    wait_until("the sandbox", lambda: bool(children(process.pid)))
    for child in children(process.pid):
        subprocess.run(["kill", "-9", str(child)], check=False)
    process.communicate(timeout=60)
    assert process.returncode != 0
    clew.wait_until_ended()
    assert {one["kind"] for one in clew.json("list")} == {"reference"}
    assert clew.leftovers() == []


PROCESSES = 8
"""clew, clew-sandbox twice, bwrap twice, the tracer, the one that holds its files, the command."""


def below(pid: int) -> list[int]:
    """A process and all that came of it, in the order in which they were started."""
    found = [pid]
    for one in found:
        found += sorted(children(one))
    return found


def is_gone(pid: int) -> bool:
    """Dead, or about to be buried by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def left_of(clew: TrackedProject) -> list[int]:
    """Every process that works on this project: the mark is not in the environment of all."""
    here = os.fsencode(clew.folder)
    found = set(clew.live_processes())
    for entry in os.listdir("/proc"):
        if entry.isdigit() and not is_gone(int(entry)):
            try:
                if here in Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.add(int(entry))
            except OSError:
                continue
    return sorted(found)


def kill_one(clew: TrackedProject, number: int, delay: float) -> None:
    """Kill the n-th process of a repeat that would last a minute, `delay` s after it appeared:
    `clew repeat` ends, and no process is left."""
    process = clew.start("repeat", "e2", "--set", "1=60", stdout=subprocess.PIPE)
    wait_until(
        f"process {number}", lambda: len(below(process.pid)) > number or process.poll() == 125
    )
    time.sleep(delay)
    seen = below(process.pid)
    os.kill(seen[min(number, len(seen) - 1)], signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_until("the end of all that was started", lambda: all(map(is_gone, seen)))
    wait_until("the end of what was started meanwhile", lambda: not left_of(clew))


def test_any_process_of_a_repeat_is_killed(clew: TrackedProject) -> None:
    clew("exec", "--", "sleep", "0")
    clew.json("repeat", "e2")
    for number in range(PROCESSES):
        kill_one(clew, number, 0.0)
    process = clew.start("repeat", "e2", "--set", "1=60", stdout=subprocess.PIPE)
    wait_until("the whole sandbox", lambda: len(below(process.pid)) == PROCESSES)
    process.terminate()
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_until("the end of all", lambda: not left_of(clew))
    unharmed(clew)


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(PROCESSES))
def test_any_process_of_a_repeat_is_killed_at_any_moment(clew: TrackedProject, number: int) -> None:
    """In steps that are shorter than anything that a process does while it is set up."""
    clew("exec", "--", "sleep", "0")
    clew.json("repeat", "e2")
    for step in range(40):
        kill_one(clew, number, step * 0.0005)
    unharmed(clew)


def unharmed(clew: TrackedProject) -> None:
    assert clew.json("repeat", "e1")["verdict"] == "identical"
    assert clew.leftovers() == []
    clew.assert_intact()


def test_an_interrupt_ends_it(clew: TrackedProject) -> None:
    clew.write("slow.sh", "echo up\nsleep 0.3\n")
    clew.shell("sh slow.sh")
    process = clew.start("repeat", "e2", stdin=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode != 0
    clew.wait_until_ended()
    clew("exec", "--", "true")
    assert {one["kind"] for one in clew.json("list")} == {"reference"}


def test_bytes_that_are_gone(clew: TrackedProject) -> None:
    for pack in (clew.folder / ".clew/store/packs").glob("*.pack"):
        pack.write_bytes(b"")
    code, message, _ = clew.error("repeat", "e1", status=3)
    assert code == "damaged", message
    assert len(clew.json("list")) == 1
    assert clew.leftovers() == []


# -- no room

NOISE = 3 << 20


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[TrackedProject]:
    """A project on a small disk of its own, with a recorded command that writes twice NOISE."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64m", "none"):
        clew = TrackedProject(tmp_path / "disk")
        (clew.folder / "noise").write_bytes(os.urandom(NOISE))
        clew.shell("cat noise > one; cat noise > two; echo done")
        yield clew
        clew.stop()


def leave(clew: TrackedProject, room: int) -> Path:
    """Fill the disk up to so many bytes; what has to go to have them back."""
    ballast = clew.folder / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(clew.folder).free - room)
    return ballast


def unchanged(clew: TrackedProject, ballast: Path) -> None:
    assert clew.states() == {"e1": "done"}
    assert clew.leftovers() == []
    ballast.unlink()
    clew.assert_intact()
    assert clew.json("repeat", "e1")["verdict"] == "identical"


@as_root
@pytest.mark.parametrize("room", [NOISE // 2, NOISE * 3 // 2])
def test_a_disk_that_the_command_fills(narrow: TrackedProject, room: int) -> None:
    narrow.json("repeat", "e1")  # its files are laid out: only what it writes needs room
    narrow("rm", "e2", "--yes")
    ballast = leave(narrow, room)
    code, message, hint = narrow.error("repeat", "e1", status=1)
    assert (code, "no space" in message, "clew gc" in hint) == ("disk-full", True, True)
    unchanged(narrow, ballast)


@as_root
def test_no_room_for_the_files_it_needs(narrow: TrackedProject) -> None:
    ballast = leave(narrow, NOISE // 2)
    code, message, _ = narrow.error("repeat", "e1", status=1)
    assert (code, "o space left" in message) == ("disk-full", True)
    unchanged(narrow, ballast)


@as_root
def test_no_room_to_begin(narrow: TrackedProject) -> None:
    narrow.json("repeat", "e1")
    narrow("rm", "e2", "--yes")
    ballast = leave(narrow, 96 << 10)
    code, message, _ = narrow.error("repeat", "e1", status=125)
    assert (code, "no space left" in message) == ("recording-failed", True)
    unchanged(narrow, ballast)
