"""A repeat that is killed, has no room, or misses bytes leaves everything as it was."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.surviving import Marked, await_, children, kill

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
