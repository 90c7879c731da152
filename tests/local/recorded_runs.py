"""Records of many executions and pipeline runs, written directly: for pages that show many.

They look like a search for the best settings of a training program: with parameters, metrics,
curves of TensorBoard, Git commits, packages, tags, failures, and code that was changed once.
"""

import json
import math
import random
import struct
import time
from pathlib import Path

from tests.unit.prov.execution_builder import ExecutionBuilder

from clew import project_directory, settings
from clew.api.local.project import LocalProject
from clew.prov.events import AnyEvent, Ended, Started
from clew.store import Store

SECOND = 10**9
CODE = """\
import json, sys

def train(rate, layers):
    model = build(layers)
    for step in range(50):
        model.fit(rate)
    return model.score()

json.dump(train(float(sys.argv[1])), open("metrics.json", "w"))
"""
LATER_CODE = CODE.replace("range(50)", "range(100)").replace("fit(rate)", "fit(rate, shuffle=True)")
STEPS = 50


def record_runs(folder: Path, executions: int = 36, runs: int = 4) -> None:
    """Add them to the project of this directory; the newest is the last execution."""
    options = settings.load()
    project = LocalProject(project_directory.find(folder, options), options)
    began = time.time_ns() - (executions + runs + 1) * 600 * SECOND
    with Store(project.directory.store) as store:
        for number in range(runs):
            project.graph.fold(_run(number, began + number * 600 * SECOND))
        for number in range(executions):
            at = began + (runs + number) * 600 * SECOND
            builder, files = _execution(number, at)
            for content in files:
                store.put_bytes(content)
            project.graph.fold(builder.events)
    for number in range(1, executions, 7):
        project.tag(f"e{number}", "baseline")
    if executions > 3:
        project.tag("e3", "best")
    project.close()


def record_execution(folder: Path, number: int) -> None:
    """One more, which has just ended."""
    options = settings.load()
    project = LocalProject(project_directory.find(folder, options), options)
    builder, files = _execution(number, time.time_ns() - 90 * SECOND)
    with Store(project.directory.store) as store:
        for content in files:
            store.put_bytes(content)
    project.graph.fold(builder.events)
    project.close()


def _execution(number: int, at: int) -> tuple[ExecutionBuilder, list[bytes]]:
    """Its events, and the bytes that it read and wrote."""
    chance = random.Random(number)
    rate, layers = (0.3, 0.1, 0.03, 0.01)[number % 4], 2 + number % 3
    optimizer = ("adam", "sgd")[number // 2 % 2]
    later = number >= 18
    words = (f"--rate={rate}", f"--optimizer={optimizer}", f"--layers={layers}", "--epochs=20")
    command = ("python3", "train.py", *words)
    git = {
        "commit": f"{0x5EED0000 + number // 9 * 4711:08x}" * 5,
        "branch": "main",
        "dirty": number % 5 == 0,
    }
    facets = {
        "git": git,
        "os": "Debian GNU/Linux 12",
        "python": "3.11.7",
        "packages": {
            "pkg:pypi/numpy@" + ("2.1.0" if later else "1.26.4"): True,
            "pkg:pypi/scikit-learn@1.5.2": True,
        },
    }
    uid = f"{number + 1:08x}" * 4
    failed = number % 11 == 10
    name = {3: "wide network", 12: "first try"}.get(number)
    variables = {"OMP_NUM_THREADS": "4" if later else "8", "LANG": "C.UTF-8"}
    builder = ExecutionBuilder(
        uid,
        at=at,
        command=command,
        agent="maria",
        facets=facets,
        name=name,
        environment=variables,
    )
    process = builder.process(*command)
    code = (LATER_CODE if later else CODE).encode()
    files = [code]
    builder.read(process, "/w/train.py", code.decode())
    if failed:
        message = b"Traceback (most recent call last):\nValueError: the loss is not finite\n"
        files.append(message)
        builder.write(process, f"stream://{builder.uid}/stderr", message)
    else:
        accuracy = round(0.98 - abs(math.log10(rate) + 1.2) * 0.12 - chance.random() * 0.05, 4)
        metrics = {"accuracy": accuracy, "val": {"auc": round(accuracy * 0.97, 4)}}
        files += [json.dumps(metrics).encode(), _curves(chance, accuracy)]
        builder.write(process, "/w/metrics.json", files[1])
        builder.write(process, "/w/logs/events.out.tfevents.1", files[2])
    builder._at = at + round((30 + chance.random() * 400) * SECOND)
    builder.end(int(failed), processes=1, inputs=1, outputs=len(files) - 1, bytes=100)
    return builder, files


def _run(number: int, at: int) -> list[AnyEvent]:
    uid = f"{0xA0000001 + number:08x}" * 4
    task, end = f"{uid}/train", at + (60 + number) * SECOND
    state = "failed" if number == 2 else "succeeded"
    artifact = {
        "uri": "minio://m",
        "type": "system.Metrics",
        "metadata": {"accuracy": 0.8 + number / 100},
    }
    facets = {"pipeline": "taxi fares", "inputs": {"rate": 0.1 * (number + 1), "trees": 100}}
    ended = {
        "state": state,
        "error": "it ran out of memory" if number == 2 else None,
        "artifacts": {"metrics": [artifact]},
    }
    return [
        Started(execution=uid, n=1, at=at, activity=uid, kind="run", facets=facets),
        Started(execution=uid, n=2, at=at, activity=task, kind="task", name="train"),
        Ended(execution=uid, n=3, at=end, activity=task, facets=ended),
        Ended(execution=uid, n=4, at=end, activity=uid, facets={"state": state}),
    ]


def _curves(chance: random.Random, accuracy: float) -> bytes:
    """A TensorBoard file with the curves of a loss and an accuracy."""
    records = b""
    for step in range(STEPS):
        fall = math.exp(-step / 12)
        for tag, value in (
            ("train/loss", 2 * fall + 0.1 + chance.random() * 0.15),
            ("train/accuracy", accuracy * (1 - 0.8 * fall) + chance.random() * 0.02),
        ):
            scalar = _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
            event = b"\x10" + bytes([step]) + _field(5, _field(1, scalar))
            records += struct.pack("<Q", len(event)) + b"\0" * 4 + event + b"\0" * 4
    return records


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data
