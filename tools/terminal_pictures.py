"""Run commands in a terminal and draw what it shows: the pictures of docs/images/*.svg.

    .venv/bin/python -m tools.terminal_pictures [NAME...]

`make pictures` calls it. Each session below is run for real, in an empty directory; a command that
fails stops the script.
"""

import io
import itertools
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS, ROWS = 104, 200
_FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)

TRAINING = f"cp -r {ROOT}/examples/training/. . && rm -f demo.sh README.md requirements.txt"
NOISY = """cat > noisy.py <<'END'
import random
open("sample.txt", "w").write(f"{random.random()}\\n")
END"""
PIPELINE = """cat > fit.py <<'END'
from kfp import dsl

@dsl.component
def prepare(rows: int, data: dsl.Output[dsl.Dataset]):
    open(data.path, "w").write("\\n".join(map(str, range(rows))))

@dsl.component
def train(data: dsl.Input[dsl.Dataset], rate: float, metrics: dsl.Output[dsl.Metrics]):
    rows = len(open(data.path).read().split())
    metrics.log_metric("accuracy", round(1 - rate / rows, 4))

@dsl.pipeline
def fit(rows: int = 100, rate: float = 0.5):
    train(data=prepare(rows=rows).outputs["data"], rate=rate)
END"""

SESSIONS: dict[str, tuple[str, list[str]]] = {
    # name of the picture: what is done before, unseen; the commands that are shown
    "record-and-trace": (
        TRAINING,
        [
            "clew exec -- ./run.sh",
            "clew trace model.pkl",
            "clew trace data/raw.csv --down | head -8",
        ],
    ),
    "repeat-and-explain": (
        NOISY,
        [
            "clew exec -- python3 noisy.py",
            "clew repeat e1",
            "clew exec --pin random -- python3 noisy.py",
            "clew repeat e3",
        ],
    ),
    "pipeline-and-reuse": (
        PIPELINE,
        [
            "clew pipeline run fit.py",
            "clew pipeline run fit.py -p rate=0.25",
            "clew pipeline why r2/train",
            "clew metrics",
        ],
    ),
    "share-and-review": (
        "mkdir author reviewer && cd author && seq 3 -1 1 > raw.txt && clew init 2> init.log",
        [
            "cd author",
            "clew exec --name figure-1 -- sh -c 'sort raw.txt > sorted.txt'",
            "clew push ../shared",
            "cd ../reviewer",
            "clew pull ../shared",
            "clew repeat figure-1",
        ],
    ),
}


def main() -> None:
    for name in sys.argv[1:] or SESSIONS:
        setup, commands = SESSIONS[name]
        (IMAGES / f"{name}.svg").write_text(draw(name, run(setup, commands)))
        print(IMAGES / f"{name}.svg")


def run(setup: str, commands: list[str]) -> str:
    """What a terminal shows of the commands, each after its prompt."""
    with tempfile.TemporaryDirectory(prefix="clew-pictures-") as home:
        kept = {
            n: v for n, v in os.environ.items() if not n.startswith(("CLEW_", "XDG_", "VIRTUAL"))
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {
            **kept,
            "PATH": path,
            "HOME": home,
            "CLEW_PAGER": "cat",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }
        work = Path(home) / "work"
        work.mkdir()
        subprocess.run(["bash", "-ec", setup], cwd=work, env=env, check=True)
        script = "\n".join(f"printf '\\033[1m$ %s\\033[0m\\n' {_quoted(c)}\n{c}" for c in commands)
        return _in_terminal(["bash", "-c", script], work, env).replace(f"{home}/work", "~")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _in_terminal(words: list[str], cwd: Path, env: dict[str, str]) -> str:
    leader, follower = pty.openpty()
    subprocess.run(["stty", "cols", str(COLUMNS), "rows", "50"], stdin=follower, check=True)
    shown = bytearray()
    with subprocess.Popen(
        words, cwd=cwd, env=env, stdin=follower, stdout=follower, stderr=follower
    ) as shell:
        os.close(follower)
        while True:
            try:
                piece = os.read(leader, 1 << 16)
            except OSError:  # the last process closed the terminal
                break
            if not piece:
                break
            shown += piece
    os.close(leader)
    if shell.returncode not in (0, 3):  # 3: a repeat that differs
        raise SystemExit(f"{shown.decode()}\n{words[-1]} ended with {shell.returncode}")
    return shown.decode()


def draw(title: str, shown: str) -> str:
    """The final screen as SVG, without the fonts that rich would load from the network."""
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.Stream(screen).feed(shown)
    text = Text()
    for row in range(screen.cursor.y):
        cells = [screen.buffer[row][column] for column in range(COLUMNS)]
        for bold, same in itertools.groupby(cells, key=lambda cell: cell.bold):
            text.append("".join(cell.data for cell in same), Style(bold=bold))
        text.append("\n")
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(text, end="")
    return _FONT_FACES.sub("", console.export_svg(title=title.replace("-", " ")))


if __name__ == "__main__":
    main()
