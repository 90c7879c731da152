"""kill -9 of clew, of the tracer, of the command, at many moments of a workflow.

Whenever it comes: nothing survives, the project opens, what was finished is intact, what was cut
short is shown as broken, its trace is told as far as it goes, and nothing is left lying about.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.local.processes import (
    TrackedProject,
    children,
    is_private,
    kill,
    tracer_of,
    wait_for_trace,
)
from tests.wait import wait_until

STEPS = 4
WORKFLOW = f"""
for i in 1 2 3 {STEPS}; do
    cat in$i > mid$i
    sort mid$i > out$i
    rm mid$i
    printf 'more\\n' >> in$i
    echo step $i
done
"""


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path, **graph_in_turn)
    for number in range(1, STEPS + 1):
        clew.write(f"in{number}", f"{number}\nb\na\n")
    yield clew
    clew.stop()


def start(clew: TrackedProject) -> subprocess.Popen[str]:
    return clew.start("exec", "--", "sh", "-c", WORKFLOW)


def await_step(process: subprocess.Popen[str], step: int) -> None:
    assert process.stdout is not None
    for _ in range(step):
        assert process.stdout.readline().startswith("step")


def finished(clew: TrackedProject) -> dict[str, Any]:
    """Everything that is known of the executions that have ended."""
    with clew.opened() as project:
        return {
            found.id: found.details
            for found in project.executions()
            if found.state in ("done", "failed")
        }


def check(clew: TrackedProject, before: dict[str, Any]) -> None:
    """After a kill: all is well, and what was finished before it is still the same."""
    clew.wait_until_ended()
    assert is_private(clew.folder / ".clew" / "spool")
    known = clew.states()
    number = clew.shell("true")["id"]
    assert number not in known
    assert clew.leftovers() == []
    states = clew.states()
    assert states.pop(number, None) == "done", (known, states)
    assert set(states.values()) <= {"broken", "done", "failed"}
    assert finished(clew).items() >= before.items()
    clew.assert_intact()
    assert finished(clew).items() >= before.items()


@pytest.mark.parametrize("step", range(STEPS + 1))
def test_clew_is_killed_after_each_step(clew: TrackedProject, step: int) -> None:
    clew("exec", "--", "sh", "-c", WORKFLOW)
    before = finished(clew)
    process = start(clew)
    await_step(process, step)
    kill(process)
    clew.wait_until_ended()
    state = clew.states().get("e2")
    assert state in ("broken", "done") if step else state in ("broken", None)
    check(clew, before)
    if state == "broken":
        assert clew.states()["e2"] == "broken"
        shown = clew.json("show", "e2", "--detail")
        files = {Path(file["path"]).name: file for file in shown["files"]}
        for number in range(1, step):  # what the last steps did may not have reached the disk
            assert files[f"in{number}"]["read"]
            assert files[f"out{number}"]["written"]
            assert files[f"mid{number}"]["role"] == "transient"
            expected = "".join(sorted(f"{number}\nb\na\nmore\n".splitlines(keepends=True)))
            assert (clew.folder / f"out{number}").read_text() == expected


def test_clew_is_killed_at_any_moment(clew: TrackedProject) -> None:
    rounds(clew, random.Random(1), count=6)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(10))
def test_clew_is_killed_at_very_many_moments(clew: TrackedProject, seed: int) -> None:
    rounds(clew, random.Random(seed), count=20)


def rounds(clew: TrackedProject, chance: random.Random, *, count: int) -> None:
    for _ in range(count):
        before = finished(clew)
        process = start(clew)
        time.sleep(chance.uniform(0, 1.2))  # the moment of the kill is what is being varied
        kill(process)
        check(clew, before)


def test_clew_is_killed_while_it_folds(clew: TrackedProject) -> None:
    """The command is over; what is left to do is interrupted."""
    chance = random.Random(2)
    for _ in range(6):
        before = finished(clew)
        process = start(clew)
        await_step(process, STEPS)
        time.sleep(chance.uniform(0, 0.25))  # the moment of the kill is what is being varied
        kill(process)
        check(clew, before)


def test_the_tracer_is_killed(clew: TrackedProject) -> None:
    for step in range(STEPS):
        process = start(clew)
        await_step(process, step)
        with suppress(ProcessLookupError):  # at the last step it may have ended
            os.kill(tracer_of(process), signal.SIGKILL)
        _, said = process.communicate()
        if process.returncode:
            assert process.returncode == 125
            assert "the tracer was ended by signal 9" in said
            assert "hint: clew show e" in said
            assert clew.leftovers() == []
        clew.wait_until_ended()
    states = clew.states()
    assert "broken" in states.values()
    check(clew, finished(clew))


def test_the_tracer_is_killed_at_its_start(clew: TrackedProject) -> None:
    """Maybe before the command has begun."""
    process = start(clew)
    subprocess.run(["kill", "-KILL", str(tracer_of(process))], check=True)
    _, said = process.communicate()
    assert process.returncode == 125, said
    check(clew, finished(clew))


def test_the_command_is_killed(clew: TrackedProject) -> None:
    process = clew.start("exec", "--", "sh", "-c", "cat in1; echo ready; exec sleep 1000")
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        pass
    (command,) = children(tracer_of(process))
    wait_until("sleep", lambda: b"sleep" in Path(f"/proc/{command}/cmdline").read_bytes())
    subprocess.run(["kill", "-KILL", str(command)], check=True)
    process.communicate()
    assert process.returncode == 128 + signal.SIGKILL
    (found,) = clew.json("list")
    assert (found["state"], found["signal"], found["status"]) == ("failed", signal.SIGKILL, None)
    assert clew("cat", "e1:in1").stdout == "1\nb\na\n"
    check(clew, finished(clew))


def test_what_ignores_every_signal_goes_with_clew(clew: TrackedProject) -> None:
    line = "trap '' HUP INT QUIT TERM; setsid sh -c 'echo ready; sleep 1000' & wait"
    process = clew.start("exec", "--", "sh", "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    kill(process)
    check(clew, {})


def test_a_signal_to_clew_is_the_command_s(clew: TrackedProject) -> None:
    line = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    process = clew.start("exec", "--", "sh", "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate()
    assert (process.returncode, out) == (7, "caught\n")
    assert clew.states() == {"e1": "failed"}


def test_what_changed_after_the_kill_is_not_taken_for_the_command_s(clew: TrackedProject) -> None:
    line = "cat in1 > out; cat in2 > other; echo ready; sleep 1000"
    process = clew.start("exec", "--", "sh", "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_for_trace(clew, b"/sleep")
    kill(process)
    clew.wait_until_ended()
    clew.write("out", "written by hand")
    clew.write("in1", "changed by hand")
    clew("exec", "--", "true")
    assert clew.states() == {"e1": "broken", "e2": "done"}
    assert clew.error("cat", "e1:out", status=5)[0] == "no-content"
    assert clew("cat", "e1:other").stdout == "2\nb\na\n"
    assert clew("cat", "e1:in2").stdout == "2\nb\na\n"
    gaps = clew.json("show", "e1")["gaps"]
    assert {Path(gap["path"]).name for gap in gaps if gap["path"]} >= {"out"}
    assert all(gap["why"] for gap in gaps)


def test_a_broken_one_can_be_forgotten(clew: TrackedProject) -> None:
    process = start(clew)
    await_step(process, 1)
    kill(process)
    clew.wait_until_ended()
    assert clew.states() == {"e1": "broken"}
    clew("rm", "e1", "--yes")
    clew("exec", "--", "true")
    assert clew.states() == {"e2": "done"}
    assert clew.leftovers() == []


@pytest.mark.parametrize("command", [["gc", "--yes"], ["fsck"]])
def test_upkeep_settles_what_was_killed(clew: TrackedProject, command: list[str]) -> None:
    line = "cat in1 > out; echo ready; sleep 1000"
    process = clew.start("exec", "--", "sh", "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_for_trace(clew, b"/sleep")
    kill(process)
    clew.wait_until_ended()
    clew(*command)
    assert clew.leftovers() == []
    assert clew.states() == {"e1": "broken"}
    assert clew("cat", "e1:in1").stdout == "1\nb\na\n"
    clew.assert_intact()


def test_missing_content_stays_missing_after_a_kill(clew: TrackedProject) -> None:
    secret = "pattern-of-the-caller"
    clew.environment |= {"CLEW_REDACT": "MY_OWN", "MY_OWN": secret}
    line = f"cat in1 in2 > out; echo {secret}; sleep 1000"
    words = ["exec", "--no-content", "--", "sh", "-c", line]
    process = clew.start(*words)
    assert process.stdout is not None
    assert process.stdout.readline() == f"{secret}\n"
    wait_for_trace(clew, b"/sleep")
    kill(process)
    clew.wait_until_ended()
    del clew.environment["CLEW_REDACT"], clew.environment["MY_OWN"]
    clew("exec", "--", "true")
    assert clew.error("cat", "e1:in1", status=5)[0] == "no-content"
    assert secret not in str(clew.json("show", "e1", "--detail"))


def killed(clew: TrackedProject, line: str) -> None:
    """The recorder of a command is killed after `line` has run."""
    process = clew.start("exec", "--", "sh", "-c", f"{line}; echo ready; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    wait_for_trace(clew, b"/sleep")
    kill(process)
    clew.wait_until_ended()


TWELVE = "for i in 1 2 3 4 5 6; do /bin/cat in1 > out$i; /bin/true; done"


def test_list_and_show_tell_what_was_recorded_before_the_kill(clew: TrackedProject) -> None:
    killed(clew, TWELVE)
    (found,) = clew.json("list")
    assert (found["state"], found["processes"]) == ("broken", 14)  # with sh and sleep
    assert (found["status"], found["ended"]) == (None, None)
    assert found["outputs"] >= 6
    assert clew.leftovers() == []
    shown = clew.json("show", "e1")
    assert len(shown["tree"]) == 14
    assert [gap["what"] for gap in shown["gaps"]] == ["trace"]
    text = clew("show", "e1").stdout
    assert text.startswith("e1  broken\n")
    assert "14 processes" in text
    assert "trace: the recorder was killed before the end: what happened afterwards" in text
    assert clew("cat", "e1:out6").stdout == "1\nb\na\n"
    log = (clew.folder / ".clew" / "log").read_text()
    assert f" list info recovered the killed execution {found['uid']}" in log


def test_a_damaged_trace_is_read_as_far_as_it_goes(clew: TrackedProject) -> None:
    killed(clew, TWELVE)
    (trace,) = (clew.folder / ".clew" / "spool").glob("*/trace")
    with open(trace, "ab") as file:
        file.write(bytes(64))  # as a power cut leaves it
    shown = clew.json("show", "e1")
    assert (shown["state"], shown["processes"]) == ("broken", 14)
    (why,) = [gap["why"] for gap in shown["gaps"] if gap["what"] == "trace"]
    assert "the trace is damaged after" in why


def test_a_record_that_cannot_be_read_is_reported(clew: TrackedProject) -> None:
    killed(clew, "cat in1 > out")
    (trace,) = (clew.folder / ".clew" / "spool").glob("*/trace")
    trace.unlink()
    trace.mkdir()  # cannot be read, as on a bad disk
    said = clew("list").stderr
    assert "clew: warning: the record of e1 is incomplete: IsADirectoryError" in said
    shown = clew.json("show", "e1")
    assert shown["state"] == "broken"
    (gap,) = shown["gaps"]
    assert gap["why"].startswith("not recovered: IsADirectoryError")
    assert trace.exists()  # for another time
    assert "Is a directory" in (clew.folder / ".clew" / "log").read_text()
    assert not clew.json("fsck", status=3)["ok"]
    clew("rm", "e1", "--yes")
    assert clew("list").stderr == "no executions recorded yet; start with: clew exec -- COMMAND\n"
    clew.assert_intact()


def test_seals_of_secret_variables_survive_the_kill(clew: TrackedProject) -> None:
    """A repeat can tell whether a secret variable has the value it had."""
    line = "API_TOKEN=one-more-secret /bin/true"
    killed(clew, line)
    clew("exec", "--", "sh", "-c", line)

    def seals(number: int) -> list[str]:
        asked = (
            "SELECT s.facets FROM started s JOIN execution x ON x.id = s.execution"
            " WHERE x.number = ? AND s.id <> s.execution"
        )
        with clew.opened() as project:
            rows = project.graph.connection.rows(asked, (number,))
        begun = [json.loads(row[0]).get("begun", {}) for row in rows]
        return [facet["sealed"]["API_TOKEN"] for facet in begun if "sealed" in facet]

    assert seals(1) == seals(2) != []
