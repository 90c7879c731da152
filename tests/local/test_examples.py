"""Every example runs as a user would run it."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project

EXAMPLES = Path(__file__).parents[2] / "examples"
TRAINING = EXAMPLES / "training"


def demo(example: str, argument: Path, temporary: Path) -> str:
    """What a demo prints; it leaves nothing in the folder for temporary files."""
    ran = subprocess.run(
        [EXAMPLES / example / "demo.sh", argument],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TMPDIR": str(temporary),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    assert not list(temporary.glob("clew-demo*"))
    return ran.stdout


def test_training_demo(tmp_path: Path) -> None:
    said = demo("training", tmp_path, tmp_path)
    assert "evaluate: accuracy" in said
    traced = said.partition("$ clew trace model.pkl\n")[2].partition("\n6. ")[0]
    for name in ("model.pkl", "train.py", "data/train.csv", "data/clean.csv", "data/raw.csv"):
        assert name in traced
    page = (tmp_path / "model.html").read_text()
    assert "raw.csv" in page
    assert [path.name for path in tmp_path.iterdir()] == ["model.html"]


def test_taxi_demo(tmp_path: Path) -> None:
    trips = tmp_path / "trips.csv"
    with trips.open("wb") as file:
        words = [sys.executable, EXAMPLES / "taxi" / "make_trips.py", "300"]
        subprocess.run(words, check=True, stdout=file)
    said = demo("taxi", trips, tmp_path)
    assert "clew: r1 succeeded" in said
    assert "6 tasks (3 reused, 3 succeeded)" in said
    for name in ("fetch", "fetch-2", "true-values"):
        assert re.search(rf"reused +{name}\b", said), said
    scores = json.loads(said.partition("$ clew cat r1/evaluate:scores\n")[2].partition("\n\n")[0])
    tips = [float(row["tips"]) for row in csv.DictReader(trips.read_text().splitlines())]
    deviations = [abs(tip - sum(tips) / len(tips)) for tip in tips]
    assert scores["mean absolute error"] < sum(deviations) / len(tips) / 2  # better than the mean
    traced = said.partition("$ clew trace r2/evaluate:scores\n")[2].partition("\n6. ")[0]
    for name in ("r2/train/model", "r1/fetch/table", "r1/true-values/tips", "trips.csv  found by"):
        assert name in traced
    assert "\n".join(trips.read_text().splitlines()[:3]) in said


def test_training_data_is_what_its_script_makes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    script = tmp_path / "make_raw.py"
    script.write_bytes((TRAINING / "make_raw.py").read_bytes())
    subprocess.run([sys.executable, script], check=True)
    assert (tmp_path / "data/raw.csv").read_bytes() == (TRAINING / "data/raw.csv").read_bytes()


def test_a_published_analysis_is_handed_on(tmp_path: Path) -> None:
    """Recorded, pushed, pulled and repeated by somebody who has none of it installed in the
    sandbox; the numbers are those that were published in 1980."""
    theirs, ours = Project(tmp_path / "theirs"), Project(tmp_path / "ours")
    for file in (EXAMPLES / "published").iterdir():
        shutil.copy(file, theirs.folder)
    ran = theirs.exec(sys.executable, "analysis.py", options=("--name", "probit"))
    assert ran.status == 0, ran.err
    assert theirs.command("push", str(tmp_path / "shared")).returncode == 0
    shutil.rmtree(theirs.folder)
    assert ours.command("pull", str(tmp_path / "shared")).returncode == 0
    again = ours.command("repeat", "probit", "--keep", "kept", "--json")
    assert again.returncode == 0, (again.stdout, again.stderr)
    assert json.loads(again.stdout)["verdict"] == "identical"
    result = json.loads((ours / "kept/result.json").read_text())
    published = {"const": -7.4523, "GPA": 1.6258, "TUCE": 0.0517, "PSI": 1.4263}
    assert result["coefficients"] == pytest.approx(published, abs=1e-4)
