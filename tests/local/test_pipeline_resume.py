"""Cancel and resume runs, and the reasons why tasks ran."""

import json
import os
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.driver import CLEW, Project
from tests.local.test_cmd_pipeline import answer, run, states, tasks
from tests.wait import wait_until

PIPELINE = """
from kfp import dsl

@dsl.component
def first(path: str) -> int:
    with open(path, "a") as file:
        file.write("ran\\n")
    return 7

@dsl.component
def second(number: int, gate: str) -> int:
    import os, time
    with open(gate + ".pid", "w") as file:
        file.write(str(os.getpid()))
    while not os.path.exists(gate):
        time.sleep(0.01)
    return number + 1

@dsl.component
def third(number: int) -> str:
    return f"got {number}"

@dsl.pipeline(name="gated")
def gated(path: str, gate: str) -> str:
    one = first(path=path).set_caching_options(False)
    return third(number=second(number=one.output, gate=gate).output).output
"""


@pytest.fixture
def gated(project: Project, tmp_path: Path) -> tuple[Project, list[str], Path]:
    (project / "gated.py").write_text(PIPELINE)
    gate = tmp_path / "gate"
    words = ["gated.py", "-p", f"path={tmp_path / 'log'}", "-p", f"gate={gate}"]
    return project, words, gate


def begin(project: Project, words: list[str], gate: Path) -> subprocess.Popen[bytes]:
    """A run whose second task waits."""
    process = subprocess.Popen(
        [*CLEW, "pipeline", "run", *words],
        cwd=project.folder,
        env=project.environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    pid = Path(f"{gate}.pid")
    wait_until("the second task", lambda: pid.exists() and pid.read_text() != "")
    wanted = {"first": "succeeded", "second": "running", "third": "pending"}
    wait_until("the record of the first", lambda: _states(project) == wanted)
    return process


def _states(project: Project) -> dict[str, str]:
    return states(answer(project, "pipeline", "show", "r1"))


def test_cancel_from_another_process(gated: tuple[Project, list[str], Path]) -> None:
    project, words, gate = gated
    with begin(project, words, gate) as process:
        document = answer(project, "pipeline", "cancel", "r1")
        assert process.wait(timeout=60) == 130
    assert document["state"] == "canceled"
    assert states(document) == {"first": "succeeded", "second": "canceled"}
    assert not Path(f"/proc/{Path(f'{gate}.pid').read_text()}").exists()
    refused = project.command("pipeline", "cancel", "r1", "--json")
    assert refused.returncode == 2
    assert "was canceled" in json.loads(refused.stdout)["error"]["message"]


@pytest.mark.parametrize("how", ["killed", "canceled"])
def test_resume_a_killed_run(gated: tuple[Project, list[str], Path], how: str) -> None:
    """What was done stays done, though it must not be reused by other runs."""
    project, words, gate = gated
    with begin(project, words, gate) as process:
        if how == "killed":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGTERM)
        process.communicate()
    before = answer(project, "pipeline", "show", "r1")
    assert before["state"] == {"killed": "failed", "canceled": "canceled"}[how]
    gate.touch()
    resumed = project.command("pipeline", "resume", "r1", "--json")
    document = json.loads(resumed.stdout)
    assert (resumed.returncode, document["id"], document["state"]) == (0, "r1", "succeeded")
    assert document["outputs"] == {"Output": "got 8"}
    assert set(states(document).values()) == {"succeeded"}
    assert tasks(document)["first"] == tasks(before)["first"]
    assert gate.with_name("log").read_text() == "ran\n"
    assert answer(project, "pipeline", "show", "r1") == document
    assert project.command("fsck").returncode == 0
    refused = project.command("pipeline", "resume", "r1", "--json")
    assert "has succeeded" in json.loads(refused.stdout)["error"]["message"]


def test_resume_a_failed_run(project: Project, tmp_path: Path) -> None:
    (project / "needy.py").write_text(
        "from kfp import dsl\n"
        "@dsl.component\ndef read(path: str) -> str:\n    return open(path).read()\n"
        "@dsl.pipeline\ndef needy(path: str) -> str:\n    return read(path=path).output\n"
    )
    words = ("needy.py", "-p", f"path={tmp_path / 'it'}")
    before = run(project, *words, status=1)
    assert before["state"] == "failed"
    (tmp_path / "it").write_text("now")
    resumed = datetime.now(UTC)
    document = json.loads(project.command("pipeline", "resume", "r1", "--json").stdout)
    assert (document["state"], document["outputs"]) == ("succeeded", {"Output": "now"})
    assert tasks(document)["read"]["error"] is None
    idle = resumed - datetime.fromisoformat(before["ended"])
    whole = datetime.fromisoformat(document["ended"]) - datetime.fromisoformat(before["started"])
    assert document["seconds"] <= (whole - idle).total_seconds(), "the pause does not count"
    assert tasks(document)["read"]["seconds"] < document["seconds"]


def test_why(gated: tuple[Project, list[str], Path]) -> None:
    project, words, gate = gated
    gate.touch()
    run(project, *words)
    run(project, *words)
    hit = answer(project, "pipeline", "why", "r2/third")
    assert (hit["state"], hit["reused_from"]) == ("reused", "r1/third")
    assert hit["parts"]["parameters"] == {"number": 8}
    launcher = [one for one in hit["facts"] if one["path"].endswith("/launcher.py")]
    assert launcher
    assert any(one["answer"].startswith("blake3:") for one in launcher)
    miss = answer(project, "pipeline", "why", "r2/first")
    assert (miss["state"], miss["why"]) == ("succeeded", "it is not to be reused")
    labels = {node["label"] for node in answer(project, "trace", "r1/third")["nodes"]}
    assert {"r1/first", "r1/second", "r1/third"} <= labels  # by the parameters they gave
    (said,) = project.command("pipeline", "why", "r2/third").stdout.decode().splitlines()
    assert "facts hold" in said
    facts = project.command("pipeline", "why", "r2/third", "--facts").stdout.decode()
    assert "launcher.py" in facts


def test_diff_trace_and_repeat_of_runs(project: Project, tmp_path: Path) -> None:
    (project / "two.py").write_text(
        "from kfp import dsl\n"
        "from kfp.dsl import Dataset, Input, Output\n"
        "@dsl.component\ndef make(text: str, data: Output[Dataset]):\n"
        "    open(data.path, 'w').write(text)\n"
        "@dsl.component\ndef pick(data: Input[Dataset]) -> str:\n"
        "    import random\n    return open(data.path).read() + str(random.random())\n"
        "@dsl.pipeline\ndef two(text: str = 'a') -> str:\n"
        "    return pick(data=make(text=text).outputs['data']).output\n"
    )
    run(project, "two.py")
    run(project, "two.py", "--no-cache")
    run(project, "two.py", "-p", "text=b")
    by_chance = project.command("diff", "r1", "r2", "--json")
    found = json.loads(by_chance.stdout)
    assert by_chance.returncode == 3
    assert [task["name"] for task in found["tasks"]] == ["pick"]
    assert (found["divergence"], found["inputs"]) == ("pick", {})
    by_parameter = json.loads(project.command("diff", "r1", "r3", "--json").stdout)
    assert by_parameter["inputs"] == {"text": ["a", "b"]}
    assert by_parameter["divergence"] is None
    assert project.command("diff", "r1", "r1").returncode == 0
    labels = {node["label"] for node in answer(project, "trace", "r1")["nodes"]}
    assert {"r1/make", "r1/pick"} <= labels
    repeated = project.command("repeat", "r1", "--json")
    verdicts = {one["task"]: one["verdict"] for one in json.loads(repeated.stdout)["tasks"]}
    assert repeated.returncode == 3
    assert verdicts == {"r1/make": "equivalent", "r1/pick": "different"}
    assert answer(project, "show", "r1") == answer(project, "pipeline", "show", "r1")


def test_a_pushed_task_includes_its_worker(project: Project, tmp_path: Path) -> None:
    (project / "one.py").write_text(
        "from kfp import dsl\n"
        "@dsl.component\ndef say() -> str:\n    return 'word'\n"
        "@dsl.pipeline\ndef one() -> str:\n    return say().output\n"
    )
    task = tasks(run(project, "one.py"))["say"]["execution"]
    worker = next(one["id"] for one in answer(project, "list") if one["id"] != task)
    refused = project.command("rm", worker, "--yes", "--json")
    assert refused.returncode == 2
    assert task in json.loads(refused.stdout)["error"]["message"]
    assert project.command("push", str(tmp_path / "remote"), task).returncode == 0
    other = Project(tmp_path / "other")
    assert other.command("pull", str(tmp_path / "remote"), task).returncode == 0
    assert len(answer(other, "list")) == 2
    pulled = next(one["id"] for one in answer(other, "list") if len(one["command"]) == 4)
    repeated = other.command("repeat", pulled, "--json")
    assert json.loads(repeated.stdout)["verdict"] == "equivalent"
    assert other.command("rm", "e1", "e2", "--yes").returncode == 0


def test_cancel_a_run_of_many_short_tasks(project: Project) -> None:
    (project / "many.py").write_text(
        "from typing import List\nfrom kfp import dsl\n"
        "@dsl.component\ndef step(x: int) -> int:\n    return x\n"
        "@dsl.pipeline\ndef many(items: List[int]):\n"
        "    with dsl.ParallelFor(items) as item:\n        step(x=item)\n"
    )
    words = ["many.py", "-p", f"items={list(range(5_000))}"]
    with subprocess.Popen(
        [*CLEW, "pipeline", "run", *words],
        cwd=project.folder,
        env=project.environment,
        stderr=subprocess.DEVNULL,
    ) as process:
        place = project / "pipeline-runs" / "r1" / "for-loop-1"
        wait_until("some tasks", lambda: place.exists() and len(list(place.iterdir())) > 5)
        document = answer(project, "pipeline", "cancel", "r1")
        assert process.wait(timeout=60) == 130
    assert document["state"] == "canceled"
    found = list(states(document).values())
    assert set(found) == {"succeeded", "canceled"}
    assert found.count("succeeded") < found.count("canceled")
