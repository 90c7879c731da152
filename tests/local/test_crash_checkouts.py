"""kill -9 of a checkout and of a commit, at many moments: the old is there or the new, whole."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.processes import TrackedProject, kill
from tests.local.test_cmd_checkout import files, litter
from tests.wait import wait_until

COUNT = 200


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[TrackedProject]:
    """e1 and e2 read 200 files each, half of them the same."""
    clew = TrackedProject(tmp_path, **graph_in_turn)
    for number in range(COUNT * 3 // 2):
        clew.write(f"in/{number:03}.txt", f"{number}\n" * 20)
    for start in (0, COUNT // 2):
        clew("exec", "--", "sh", "-c", f"cat $(ls in/* | tail -n +{start + 1} | head -{COUNT})")
    yield clew
    clew.stop()


def switched(clew: TrackedProject, chance: random.Random, *, rounds: int) -> None:
    both = {}
    for name in ("e2", "e1"):
        began = time.monotonic()
        clew("checkout", name, "work")
        took = time.monotonic() - began
        both[name] = files(clew.folder / "work")
    assert both["e1"] != both["e2"] and len(both["e1"]) == COUNT
    for _ in range(rounds):
        now = clew.json("status", "work")["execution"]
        other = {"e1": "e2", "e2": "e1"}[now]
        process = clew.start("checkout", other, "work")
        time.sleep(chance.uniform(0, took))  # the moment of the kill is what is being varied
        kill(process)
        found = clew.json("status", "work")
        assert files(clew.folder / "work") == both[found["execution"]]
        assert found["modified"] == found["added"] == found["deleted"] == []
    clew("checkout", "e1", "work")
    assert files(clew.folder / "work") == both["e1"]
    assert litter(clew.folder) == []


def test_a_switch_is_killed_at_any_moment(clew: TrackedProject) -> None:
    switched(clew, random.Random(1), rounds=5)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(5))
def test_a_switch_is_killed_at_very_many_moments(clew: TrackedProject, seed: int) -> None:
    switched(clew, random.Random(seed), rounds=30)


def test_a_first_checkout_is_killed(clew: TrackedProject) -> None:
    """At the moment its draft is seen: nothing bears the name, and the next removes the rest."""
    process = clew.start("checkout", "e1", "work")
    wait_until("the draft", lambda: bool(litter(clew.folder)) or process.poll() is not None)
    kill(process)
    work = clew.folder / "work"
    assert not work.exists() or len(files(work)) == COUNT
    clew("checkout", "e2", "work")
    assert len(files(work)) == COUNT
    assert litter(clew.folder) == []


def committed(clew: TrackedProject, chance: random.Random, *, rounds: int) -> None:
    clew("checkout", "e1", "work")
    clew.write("work/in/000.txt", "changed\n")
    began = time.monotonic()
    clew("commit", "work")
    took = time.monotonic() - began
    clew.write("work/in/000.txt", "changed again\n")
    before = files(clew.folder / "work")
    state = (clew.folder / "work/.clew-checkout").read_bytes()
    for _ in range(rounds):
        known = clew.states()
        process = clew.start("commit", "work")
        time.sleep(chance.uniform(0, took))  # as above
        kill(process)
        clew.wait_until_ended()
        clew("exec", "--", "true")  # whoever comes next settles what was left
        new = {i: s for i, s in clew.states().items() if i not in known}
        assert set(new.values()) <= {"done"} and len(new) <= 2
        assert clew.leftovers() == []
        assert files(clew.folder / "work") == before
        if (clew.folder / "work/.clew-checkout").read_bytes() != state:
            assert len(new) == 2  # it came after the end, and nothing is to be done
            break
    clew("commit", "work")
    assert clew.json("status", "work")["modified"] == []
    clew.assert_intact()


def test_a_commit_is_killed_at_any_moment(clew: TrackedProject) -> None:
    committed(clew, random.Random(2), rounds=4)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(5))
def test_a_commit_is_killed_at_very_many_moments(clew: TrackedProject, seed: int) -> None:
    committed(clew, random.Random(seed), rounds=20)
