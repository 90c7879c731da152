"""The image classifiers: their networks, their grids, and all their tasks on made-up images."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.driver import Project

ROOT = Path(__file__).parents[2]
TENSORFLOW = ROOT / "build" / "tensorflow" / "bin"
READ_LOGS = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for folder in sys.argv[1:]:
    events = EventAccumulator(folder)
    events.Reload()
    print(*(event.step for event in events.Tensors("epoch_accuracy")))
"""


def pipeline(example: str) -> Path:
    return ROOT / "examples" / example / "pipeline.py"


@pytest.mark.parametrize(
    ("example", "epochs"), [("mnist", [10, 25, 50]), ("cifar10", [25, 50, 100, 200])]
)
def test_the_grid_is_the_published_one(example: str, epochs: list[int], tmp_path: Path) -> None:
    """Compiling takes the SDK alone, not TensorFlow."""
    target = tmp_path / "compiled.yaml"
    kfp = Path(sys.executable).with_name("kfp")
    words = ["--py", pipeline(example), "--function", example, "--output", target]
    subprocess.run([kfp, "dsl", "compile", *words], check=True, capture_output=True)
    parameters = yaml.safe_load(target.read_text())["root"]["inputDefinitions"]["parameters"]
    assert {name: one["defaultValue"] for name, one in parameters.items()} == {
        "folder": "data",
        "learning_rates": [0.001, 0.01],
        "epochs": epochs,
        "batch_sizes": [32, 64],
        "optimizers": ["Adam", "SGD"],
    }


@pytest.fixture
def trainer(tmp_path: Path) -> Project:
    """A project whose `python3` has TensorFlow."""
    if not (TENSORFLOW / "python3").exists():
        pytest.fail("TensorFlow is not set up: make build/tensorflow/.ready (make test-heavy does)")
    return Project(tmp_path, PATH=f"{TENSORFLOW}:{os.environ['PATH']}", CUDA_VISIBLE_DEVICES="-1")


def run(project: Project, example: str, **given: object) -> dict[str, dict[str, Any]]:
    """Its tasks by name."""
    words = [word for name, one in given.items() for word in ("-p", f"{name}={json.dumps(one)}")]
    ran = project.command("pipeline", "run", pipeline(example), *words, "--json", timeout=1800)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    return {task["name"]: task for task in json.loads(ran.stdout)["tasks"]}


def uri(task: dict[str, Any], output: str) -> str:
    (made,) = task["artifacts"][output]
    return str(made["uri"])


@pytest.mark.heavy
@pytest.mark.parametrize(("example", "parameters"), [("mnist", 256_618), ("cifar10", 2_397_226)])
def test_a_small_grid(trainer: Project, example: str, parameters: int) -> None:
    words = [sys.executable, pipeline("mnist").with_name("make_images.py")]
    subprocess.run([*words, example, trainer / "data"], check=True)
    # Small batches: batch normalisation needs some hundred of them to know its means.
    chosen = {"epochs": [5], "batch_sizes": [4], "learning_rates": [0.001]}
    first = run(trainer, example, **chosen, optimizers=["Adam"])
    assert {task["state"] for task in first.values()} == {"succeeded"}
    assert first["define"]["outputs"] == {"Output": parameters}
    (made,) = first["search/for-loop-1/0/evaluate"]["artifacts"]["scores"]
    assert made["metadata"]["test accuracy"] > 0.5  # guessing gives 0.1
    assert made["metadata"]["train accuracy"] > 0.5

    logs = Path(uri(first["search/for-loop-1/0/train"], "logs"))
    words = [TENSORFLOW / "python3", "-c", READ_LOGS, logs / "train", logs / "validation"]
    read = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert read.splitlines() == ["0 1 2 3 4"] * 2

    second = run(trainer, example, **chosen, optimizers=["Adam", "SGD"])
    shared = ("load", "define", "search/normalise")
    before = tuple(f"search/for-loop-1/0/{name}" for name in ("train", "evaluate"))
    assert {second[name]["state"] for name in (*shared, *before)} == {"reused"}
    accuracies = {
        optimizer: second[f"search/for-loop-1/{number}/evaluate"]["outputs"]["Output"]
        for number, optimizer in enumerate(("Adam", "SGD"))
    }
    best = max(accuracies, key=lambda optimizer: accuracies[optimizer])
    lines = Path(uri(second["search/compare"], "table")).read_text().splitlines()
    assert lines[2] == f"| 5 | {best} | 0.001 | 4 | {accuracies[best]:.2%} |"
    assert len(lines) == 4
