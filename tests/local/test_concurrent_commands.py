"""Several at once: executions side by side and inside each other, upkeep beside them."""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver import EXECUTION
from tests.local.processes import TrackedProject

CLEW = f"{sys.executable} -m clew"


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path, **graph_in_turn)
    clew.write("data", "some data\n")
    yield clew
    clew.stop()


def side_by_side(clew: TrackedProject, count: int) -> None:
    running = [
        clew.start("exec", "--json", "--", "sh", "-c", f"cat data > copy{n}; echo {n} >> copy{n}")
        for n in range(count)
    ]
    found = {}
    for number, process in enumerate(running):
        _, said = process.communicate()
        assert process.returncode == 0, said
        found[json.loads(said.splitlines()[-1])["id"]] = number
    assert found.keys() == {f"e{n + 1}" for n in range(count)}
    assert set(clew.states().values()) == {"done"}
    with clew.opened() as project:
        for execution, number in found.items():
            assert project.read(f"{execution}:copy{number}") == b"some data\n%d\n" % number
            (output,) = [f for f in project.execution(execution).outputs if "copy" in f.path]
            assert output.path == str(clew.folder / f"copy{number}")
    assert clew.leftovers() == []
    clew.assert_intact()


def test_eight_side_by_side(clew: TrackedProject) -> None:
    side_by_side(clew, 8)


@pytest.mark.heavy
def test_forty_side_by_side(clew: TrackedProject) -> None:
    side_by_side(clew, 40)


@pytest.mark.heavy
def test_a_hundred_quick_ones(clew: TrackedProject) -> None:
    for number in range(100):
        clew("exec", "--name", f"quick{number}", "--", "sh", "-c", f"echo {number} > out")
    assert set(clew.states()) == {f"e{n + 1}" for n in range(100)}
    assert set(clew.states().values()) == {"done"}
    assert clew("cat", "quick57:out").stdout == "57\n"
    assert clew.leftovers() == []
    clew.assert_intact()


def test_killed_and_new_executions_at_the_same_time(clew: TrackedProject) -> None:
    """Several newcomers find the same leavings: each is told once."""
    doomed = [clew.start("exec", "--", "sh", "-c", "cat data; sleep 1000") for _ in range(3)]
    for process in doomed:
        assert process.stdout is not None
        assert process.stdout.readline() == "some data\n"
    for process in doomed:
        process.kill()
    for process in doomed:
        process.communicate()
    clew.wait_until_ended()
    running = [clew.start("exec", "--", "cat", "data") for _ in range(4)]
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said
    states = clew.states()
    assert sorted(states.values()) == ["broken"] * 3 + ["done"] * 4
    clew("exec", "--", "true")
    assert clew.leftovers() == []
    with clew.opened() as project:
        for execution, state in states.items():
            shown = project.show(execution, detail=True)
            edges = [file.path for file in shown.files or () if file.path.endswith("/data")]
            assert len(edges) == (1 if state == "done" else len(edges)) <= 1
    clew.assert_intact()


def test_upkeep_beside_running_ones(clew: TrackedProject) -> None:
    """gc, rm and fsck go on and on while executions begin, store and end."""
    over = threading.Event()
    wrong: list[str] = []

    def tidy() -> None:
        while not over.is_set():
            with clew.opened() as project:
                if problems := project.fsck().problems:
                    wrong.append(str(problems))
                project.gc()
                for found in project.executions():
                    if found.state == "done" and found.name == "doomed":
                        project.remove([found.id])

    thread = threading.Thread(target=tidy)
    thread.start()
    try:
        for number in range(6):
            clew.write(f"own{number}", f"what only {number} read\n")
            name = ["--name", "doomed"] if number % 2 else []
            clew("exec", *name, "--", "sh", "-c", f"cat own{number} > out{number}")
            (clew.folder / f"own{number}").unlink()
            if number % 2:
                with clew.opened() as project:
                    for found in project.executions():
                        if found.name == "doomed":
                            clew.start("rm", found.id, "--yes").communicate()
    finally:
        over.set()
        thread.join()
    assert wrong == []
    with clew.opened() as project:
        for number, found in enumerate(project.executions()):
            assert found.name is None
            assert project.read(f"{found.id}:own{2 * number}") == b"what only %d read\n" % (
                2 * number
            )
    clew.assert_intact()


def test_a_running_one_cannot_be_forgotten(clew: TrackedProject) -> None:
    process = clew.start("exec", "--", "sh", "-c", "cat data; read word")
    assert process.stdout is not None
    assert process.stdout.readline() == "some data\n"
    code, message, hint = clew.error("rm", "e1", "--yes", status=1)
    assert (code, message) == ("busy", "e1 is still running")
    assert hint
    process.communicate("go\n")
    assert process.returncode == 0
    clew("rm", "e1", "--yes")
    assert clew.states() == {}


def test_inside_each_other(clew: TrackedProject) -> None:
    inner = f"{CLEW} exec -- sh -c 'cat data > deep; exit 5'"
    outer = clew("exec", "--json", "--", "sh", "-c", f"{inner}; echo $? > status")
    assert json.loads(outer.stderr.splitlines()[-1])["id"] == "e1"
    assert clew.states() == {"e1": "done"}
    assert (clew.folder / "status").read_text() == "5\n"
    assert "clew: recorded as part of e1" in outer.stderr
    assert clew("cat", "e1:deep").stdout == "some data\n"


def test_inside_each_other_for_another_project(clew: TrackedProject) -> None:
    nested = clew.folder / "nested"
    nested.mkdir()
    clew("init", cwd=nested)
    inner = f"cd nested && {CLEW} exec --json -- sh -c 'cat ../data > deep; exit 5'"
    outer = clew("exec", "--", "sh", "-c", inner, status=5)
    told = next(json.loads(line) for line in outer.stderr.splitlines() if line.startswith("{"))
    assert told.keys() >= EXECUTION
    assert told["uid"] == clew.json("list")[::-1][0]["uid"]
    assert clew.json("list", cwd=nested) == []
    assert clew("cat", f"e1:{nested}/deep").stdout == "some data\n"


def test_inside_each_other_what_cannot_run(clew: TrackedProject) -> None:
    for word, status in (("no-such-program", 127), ("./data", 126)):
        ran = clew("exec", "--", "sh", "-c", f"{CLEW} exec -- {word}", status=status)
        assert "hint: " in ran.stderr
    assert set(clew.states().values()) == {"failed"}


def test_a_name_is_given_once(clew: TrackedProject) -> None:
    clew("exec", "--name", "mine", "--", "true")
    ran = clew("exec", "--name", "mine", "--", "touch", "it-ran", status=2)
    assert "belongs to e1 already" in ran.stderr
    assert "clew rm e1" in ran.stderr
    assert not (clew.folder / "it-ran").exists()
    assert clew.states() == {"e1": "done"}
    assert clew.leftovers() == []
    clew("rm", "mine", "--yes")
    clew("exec", "--name", "mine", "--", "true")


def test_a_name_is_given_to_one_of_concurrent_executions(clew: TrackedProject) -> None:
    running = [clew.start("exec", "--name", "mine", "--", "true") for _ in range(5)]
    ends = []
    for process in running:
        process.communicate()
        ends.append(process.returncode)
    assert sorted(ends) == [0, 2, 2, 2, 2]
    assert list(clew.states().values()) == ["done"]


def test_the_command_is_left_what_it_was_handed(clew: TrackedProject) -> None:
    """Descriptors and signals are as they would be without us."""
    with open(clew.folder / "data") as handed:
        number = handed.fileno()
        program = (
            f"import os; print(os.read({number}, 99)); print(open('/proc/self/status').read())"
        )
        words = ("exec", "--", sys.executable, "-c", program)
        ran = clew(*words, pass_fds=(number,))
    assert ran.stdout.startswith("b'some data\\n'\n")
    assert "SigBlk:\t0000000000000000\n" in ran.stdout
