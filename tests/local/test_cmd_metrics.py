"""`clew metrics`: parameters and metrics of executions and runs side by side."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.driver import Project
from tests.unit.api.test_tensorboard_events import SIMPLE

TRAIN = """
import json, sys
rate = float(sys.argv[2])
json.dump({"accuracy": 1 - rate, "val": {"loss": rate * 2}, "ok": True}, open("metrics.json", "w"))
"""

PIPELINE = """
from kfp import dsl

@dsl.component
def train(rate: float, metrics: dsl.Output[dsl.Metrics]):
    metrics.log_metric("accuracy", 1 - rate)

@dsl.component
def check(metrics: dsl.Output[dsl.Metrics]):
    metrics.log_metric("accuracy", 0.5)
    metrics.log_metric("rows", 3)

@dsl.pipeline
def fit(rate: float = 0.5):
    train(rate=rate)
    check()
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("metrics"))
    (project.folder / "train.py").write_text(TRAIN)
    (project.folder / "fit.py").write_text(PIPELINE)
    (project.folder / "events").write_bytes(SIMPLE)
    project("exec", "--name", "fast", "--", "python3", "train.py", "--rate", "0.25")
    project("exec", "--", "python3", "train.py", "--rate", "0.125")
    project("exec", "--name", "board", "--", "sh", "-c", "cp events events.out.tfevents.1")
    project("exec", "--", "true")
    project("pipeline", "run", "fit.py")
    return project


def test_a_table_of_executions_and_runs(project: Project) -> None:
    rows = {row["id"]: row for row in project.json("metrics")}
    assert list(rows) == ["r1", "e3", "e2", "e1"]
    assert rows["e1"]["parameters"] == {"rate": "0.25"}
    assert rows["e1"]["metrics"] == {"accuracy": 0.75, "val.loss": 0.5}
    assert rows["e3"]["metrics"] == {"train/loss": 0.5}
    assert rows["r1"]["parameters"] == {"rate": 0.5}
    assert rows["r1"]["metrics"] == {"train.accuracy": 0.5, "check.accuracy": 0.5, "rows": 3}


def test_sorted_and_only_what_differs_as_csv(project: Project) -> None:
    printed = project("metrics", "e2", "fast", "--sort", "accuracy", "--diff", "--csv").stdout
    assert printed.splitlines() == [
        "id,name,rate,accuracy,val.loss",
        "e1,fast,0.25,0.75,0.5",
        "e2,,0.125,0.875,0.25",
    ]
    code, message, _ = project.error("metrics", "--sort", "f1", status=5)
    assert code == "not-found"
    assert message == "no parameter or metric f1"


def test_plots(project: Project, tmp_path: Path) -> None:
    bars = project("metrics", "e1", "e2", "--plot", "accuracy", "--against", "rate").stdout
    first, second = bars.splitlines()
    assert first.startswith("e2  rate=0.125  0.875")
    assert first.count("█") > second.count("█") > 0
    for words in (["--plot", "train/loss"], ["--plot", "accuracy", "--against", "rate"]):
        project("metrics", *words, "-o", str(tmp_path / "plot.svg"))
        picture = ElementTree.parse(tmp_path / "plot.svg")
        assert picture.findall("{http://www.w3.org/2000/svg}polyline")


def test_numbers_that_json_cannot_express(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("odd", '{"loss": NaN, "rate": 1e999, "rows": 3, "count": ' + "9" * 4000 + "}")
    project.shell("cat odd > metrics.json")
    told = project.json("metrics", "e1")[0]["metrics"]
    assert told == {"loss": None, "rate": None, "rows": 3}
    assert "nan" in project("metrics", "--plot", "rows", "e1").stdout + project("metrics").stdout
