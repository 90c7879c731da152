"""Every example runs as a user would run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TRAINING = Path(__file__).parents[2] / "examples" / "training"


def test_training_demo(tmp_path: Path) -> None:
    ran = subprocess.run(
        [TRAINING / "demo.sh", tmp_path],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    assert "evaluate: accuracy" in ran.stdout
    traced = ran.stdout.partition("$ clew trace model.pkl\n")[2].partition("\n6. ")[0]
    for name in ("model.pkl", "train.py", "data/train.csv", "data/clean.csv", "data/raw.csv"):
        assert name in traced
    page = (tmp_path / "model.html").read_text()
    assert "raw.csv" in page
    assert [path.name for path in tmp_path.iterdir()] == ["model.html"]


def test_training_data_is_what_its_script_makes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    script = tmp_path / "make_raw.py"
    script.write_bytes((TRAINING / "make_raw.py").read_bytes())
    subprocess.run([sys.executable, script], check=True)
    assert (tmp_path / "data/raw.csv").read_bytes() == (TRAINING / "data/raw.csv").read_bytes()
