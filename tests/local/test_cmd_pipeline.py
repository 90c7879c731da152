"""`clew pipeline`: pipelines that the stock SDK compiled, run by the real command line."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE, compile_pipeline, run_script
from tests.wait import wait_until

RUN = {"id", "uid", "name", "state", "inputs", "outputs", "tasks"}
TASK = {
    *("id", "name", "state", "started", "ended", "seconds", "parameters", "outputs", "artifacts"),
    *("reused_from", "why", "error"),
}
ARTIFACT = {"uri", "type", "digest", "size", "metadata"}
"""What the contract promises."""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every pipeline of `programs/pipelines.py` is, compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    run_script(HERE / "pipelines.py", folder)
    return folder


def run(project: Project, file: str | Path, *words: str, status: int = 0) -> dict[str, Any]:
    """Run a pipeline. A Python file is compiled here first, unless it is to be refused."""
    path = project.folder / file
    if path.suffix == ".py" and status != 2:
        path = compile_pipeline(path, project.folder)
    ran = project.command("pipeline", "run", path, *words, "--json")
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def tasks(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {task["name"]: task for task in document["tasks"]}


def states(document: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["state"] for task in document["tasks"]}


def answer(project: Project, *words: str) -> Any:
    ran = project.command(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def completed(project: Project, *words: str) -> list[str]:
    """What the completion scripts are given."""
    asked = {"_CLEW_COMPLETE": "lines_complete", "COMP_WORDS": "\n".join(["clew", *words])}
    lines = project.command(env={**project.environment, **asked}).stdout.decode().splitlines()
    return [line.split("\t")[1] for line in lines if line.startswith("plain\t")]


def test_run_show_and_artifacts(project: Project, compiled: Path) -> None:
    document = run(project, compiled / "training.yaml", "-p", "rows=4")
    assert document.keys() >= RUN
    assert (document["id"], document["name"], document["state"]) == ("r1", "training", "succeeded")
    assert document["inputs"] == {"rows": 4, "rate": 0.5}
    assert document["outputs"] == {"Output": 3.0}
    found = tasks(document)
    assert all(task.keys() >= TASK for task in found.values())
    assert found["train"]["parameters"] == {"rate": 0.5}
    made = found["fetch"]["artifacts"]["data"][0]
    assert made.keys() >= ARTIFACT
    assert (made["type"], made["size"], made["metadata"]) == ("system.Dataset", 8, {"rows": 4})
    assert Path(made["uri"]).read_text() == "0\n1\n2\n3\n"
    assert (project / "pipeline-runs/.gitignore").read_text() == "*\n"
    assert found["train"]["artifacts"]["scores"][0]["metadata"] == {"weight": 3.0}
    assert answer(project, "pipeline", "show", "r1") == document
    assert [one["id"] for one in answer(project, "pipeline", "list")] == ["r1"]


def test_ids_of_tasks_and_artifacts_in_other_commands(project: Project, compiled: Path) -> None:
    run(project, compiled / "training.yaml")
    listed = answer(project, "list")  # a run is none; the worker that forked both is one
    assert sorted(one["command"][2:] for one in listed)[0] == []
    assert len(listed) == 3
    traced = answer(project, "trace", "r1/train:model")
    labels = {node["label"] for node in traced["nodes"]}
    assert str(project / "pipeline-runs" / "r1" / "fetch" / "data") in labels
    assert "worker" not in labels
    modules = [node for node in traced["nodes"] if node["label"].endswith("/component.py")]
    pipeline = (compiled / "training.yaml").resolve().as_uri()
    assert [module["source"] for module in modules] == [pipeline] * 2
    whole = answer(project, "trace", "r1/train:model", "--all")
    assert "worker" in {node["label"] for node in whole["nodes"]}
    assert project.command("cat", "r1/train:model").stdout == b"22.5"
    assert json.loads(project.command("cat", "r1/train:scores").stdout) == {"weight": 22.5}
    assert (
        answer(project, "show", "r1/train")["id"]
        == answer(project, "pipeline", "show", "r1")["tasks"][1]["execution"]
    )
    assert b"\nrows 10\n" in project.command("pipeline", "logs", "r1/train").stdout
    assert answer(project, "pipeline", "logs", "r1/train")["task"] == "r1/train"
    repeated = project.command("repeat", "r1/fetch", "--json")
    assert json.loads(repeated.stdout)["verdict"] in ("identical", "equivalent")
    assert completed(project, "pipeline", "show", "") == ["latest", "r1"]
    assert answer(project, "pipeline", "show", "latest")["id"] == "r1"
    assert answer(project, "show", "latest/train")["task"] == "r1/train"
    rows = project.command("list").stdout.decode().splitlines()
    assert sorted(row.split("\t")[1] for row in rows[1:])[1:] == ["r1/fetch", "r1/train"]
    assert completed(project, "pipeline", "logs", "r") == ["r1/"]
    assert completed(project, "pipeline", "why", "r1/t") == ["r1/train"]
    assert completed(project, "cat", "r1/train:") == ["r1/train:model", "r1/train:scores"]
    assert "r1" in completed(project, "show", "")
    for words in (("trace", "r1/train:no"), ("show", "r1/no"), ("pipeline", "show", "r9")):
        assert project.command(*words).returncode == 5


def test_types_are_kept(project: Project, compiled: Path) -> None:
    document = run(project, compiled / "types.yaml")
    assert document["outputs"]["Output"] == "int float str bool list dict NoneType int"
    typed = ("i=-3", "f=1e-3", "s=7", "b=true", "many=[5]", 'd={"k": 2}')
    given = [word for one in typed for word in ("-p", one)]
    document = run(project, compiled / "types.yaml", *given)
    inputs = {"i": -3, "f": 0.001, "s": "7", "b": True, "many": [5], "d": {"k": 2}}
    assert (document["id"], document["inputs"]) == ("r2", inputs)


@pytest.mark.parametrize("wrong", ["i=3.5", "f=much", "b=7", "many=5", "d=[1]", "nobody=1"])
def test_a_parameter_of_another_type_is_refused(
    project: Project, compiled: Path, wrong: str
) -> None:
    error = run(project, compiled / "types.yaml", "-p", wrong, status=2)["error"]
    assert wrong.partition("=")[0] in error["message"]
    assert answer(project, "pipeline", "list") == []


@pytest.mark.parametrize(
    ("side", "output", "taken"),
    [
        ("heads", "it is heads", "condition-2/give"),
        ("it's", "a quote", "condition-3/give-2"),
        ("zzz' or '1'=='1", "neither", "condition-4/give-3"),
    ],
)
def test_branches(project: Project, compiled: Path, side: str, output: str, taken: str) -> None:
    document = run(project, compiled / "branching.yaml", "-p", f"side={side}")
    assert document["outputs"] == {"Output": output}
    found = states(document)
    assert found[f"condition-branches-1/{taken}"] == "succeeded"
    assert sorted(found.values()).count("skipped") == 2


def test_loops(project: Project, compiled: Path) -> None:
    document = run(project, compiled / "looping.yaml", "-p", 'words=["x", "y", "z"]')
    assert document["outputs"] == {"total": 12, "all": "x,y,z", "nested": "<two>"}
    assert set(states(document).values()) == {"succeeded"}
    nested = [name for name in states(document) if name.count("/") == 4]
    assert len(nested) == 4


def test_failures(project: Project, compiled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tries"
    folder.mkdir()
    document = run(project, compiled / "failing.yaml", "-p", f"folder={folder}", status=1)
    found = tasks(document)
    inside = "exit-handler-1/"
    assert states(document) == {
        f"{inside}break-down": "failed",
        f"{inside}say": "skipped",
        f"{inside}say-2": "succeeded",
        f"{inside}succeed-later": "succeeded",
        "bye": "succeeded",
    }
    assert (document["state"], document["id"]) == ("failed", "r1")
    assert "break-down" in document["error"]
    assert found[f"{inside}say"]["why"] == "break-down failed"
    assert found[f"{inside}say-2"]["outputs"] == {"Output": "nothing"}  # the default
    assert len(found[f"{inside}succeed-later"]["attempts"]) == 3
    assert found["bye"]["outputs"] == {"Output": "FAILED exit-handler-1 failing-r1"}
    log = project.command("pipeline", "logs", "r1/break-down").stdout
    assert b"RuntimeError: as it should" in log
    error = found[f"{inside}break-down"]["error"]
    assert error == "RuntimeError: as it should (component.py, line 8: raise RuntimeError(why))"
    shown = project.command("pipeline", "show", "r1")
    assert b"hint: clew pipeline logs r1/exit-handler-1/break-down\n" in shown.stderr
    outside = run(project, compiled / "bye.yaml", "-p", "job=alone")
    assert outside["outputs"] == {"Output": "SUCCEEDED bye alone"}, "outside an exit handler"


def test_importer_and_embedded_artifact(project: Project, compiled: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("found")
    document = run(project, compiled / "importing.yaml", "-p", f"uri={tmp_path / 'there'}")
    assert document["outputs"] == {"Output": "found!"}
    imported = tasks(document)["importer"]["artifacts"]["artifact"][0]
    assert imported["metadata"] == {"who": "me"}
    document = run(project, compiled / "embedding.yaml")
    assert document["outputs"] == {"Output": "embedded words"}


def test_a_large_parameter(project: Project, compiled: Path) -> None:
    words = "x" * 100_000  # what one argument of ours may be; the task's is twice that
    (project / "wide.py").write_text(
        "from kfp import dsl\n"
        "@dsl.component\n"
        "def twice(text: str) -> str:\n    return text * 2\n"
        "@dsl.component\n"
        "def length(text: str) -> int:\n    return len(text)\n"
        "@dsl.pipeline\n"
        "def wide(text: str) -> int:\n    return length(text=twice(text=text).output).output\n"
    )
    document = run(project, project / "wide.py", "-p", f"text={words}")
    assert document["outputs"] == {"Output": 200_000}


def test_independent_tasks_run_in_parallel(
    project: Project, compiled: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "meeting"
    folder.mkdir()
    words = ("-p", f"folder={folder}", "--jobs", "2")
    assert run(project, compiled / "meeting.yaml", *words)["state"] == "succeeded"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_stops_all_tasks(
    project: Project, compiled: Path, tmp_path: Path, number: signal.Signals
) -> None:
    mark = tmp_path / "mark"
    words = [*CLEW, "pipeline", "run", compiled / "endless.yaml", "-p", f"mark={mark}"]
    heard = ["env", "--default-signal=INT"]  # in the background interrupts are ignored
    with subprocess.Popen(
        [*heard, *words], cwd=project.folder, env=project.environment, stderr=subprocess.PIPE
    ) as process:
        _await_running(project, mark)
        process.send_signal(number)
        assert process.wait(timeout=60) == 130
    assert not _lives(int(mark.read_text()))
    document = answer(project, "pipeline", "show", "r1")
    assert document["state"] == "canceled"
    assert states(document) == {"wait-for-ever": "canceled"}


def test_a_killed_run_shows_as_failed(project: Project, compiled: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    words = [*CLEW, "pipeline", "run", compiled / "endless.yaml", "-p", f"mark={mark}"]
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stderr=subprocess.PIPE
    ) as process:
        _await_running(project, mark)
        process.kill()
        process.wait()
    document = answer(project, "pipeline", "show", "r1")
    assert (document["state"], document["ended"]) == ("failed", None)
    assert states(document) == {"wait-for-ever": "failed"}
    assert run(project, compiled / "training.yaml")["id"] == "r2"
    assert [one["id"] for one in answer(project, "pipeline", "list")] == ["r2", "r1"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("training.yaml", "-p", "rows=many"), "usage", "rows"),
        (("training.yaml", "-p", "row=1"), "usage", "no parameter row"),
        (("importing.yaml",), "usage", "requires the parameter uri"),
        (("none.yaml",), "not-found", "none.yaml"),
    ],
)
def test_refused_before_anything_runs(
    project: Project, compiled: Path, words: tuple[str, ...], code: str, message: str
) -> None:
    status = {"not-found": 5}.get(code, 2)
    error = run(project, compiled / words[0], *words[1:], status=status)["error"]
    assert error["code"] == code
    assert message in error["message"]
    assert error["hint"]
    assert answer(project, "pipeline", "list") == []


def test_a_python_file_with_no_pipeline(project: Project) -> None:
    (project / "none.py").write_text("x = 1\n")
    error = run(project, "none.py", status=2)["error"]
    assert "0 pipelines" in error["message"]


def _lives(pid: int) -> bool:
    """Whether it runs: one that nobody asks after has ended all the same."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return words.rpartition(")")[2].split()[0] not in "ZX"


def _await_running(project: Project, mark: Path) -> None:
    """Until the endless task is at work, and that is on record."""
    wait_until("its beginning", mark.exists)
    at_work = {"wait-for-ever": "running", "say": "pending"}
    wait_until("its record", lambda: states(answer(project, "pipeline", "show", "r1")) == at_work)
