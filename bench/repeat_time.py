"""The time of a repeat: its start, a whole training workflow, and an incremental repeat.

    python bench/repeat_time.py [--rounds 5] [--json FILE]

- from calling `clew repeat` to the first line of the repeated program, which reads 5,000 files
  and was repeated before; beside it `reprounzip directory run` (its `setup` done) and
  `sciunit repeat`;
- the training workflow of `examples/training`: `clew repeat` as a ratio to its own `clew exec`;
  beside it the same ratio of both peers;
- `clew repeat --incremental` of a script of 50 processes when nothing changed.

Prints medians over the rounds, each with its target. A peer that cannot run here
says why.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import peers

CLEW = str(Path(sys.executable).with_name("clew"))
TRAINING = Path(__file__).resolve().parent.parent / "examples" / "training"
FILES, PROCESSES = 5_000, 50

READ = """
import os, sys, time
os.write(1, b"began %d\\n" % time.time_ns())
for i in range(int(sys.argv[1])):
    with open(f"files/{i // 100}/{i}.txt", "rb") as file:
        file.read()
"""
SCRIPT = "".join(f"sort -r part-{i} > sorted-{i}\n" for i in range(PROCESSES - 1))


def run(command: list[str], cwd: Path, *, fails: bool = False, **more: str) -> tuple[float, bytes]:
    """Wall seconds, and what it said."""
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    wall = time.perf_counter() - begin
    if done.returncode and not fails:
        said = (done.stderr + done.stdout).decode(errors="replace")[-2000:]
        raise SystemExit(f"{' '.join(command)} failed: {said}")
    return wall, done.stdout


class Tool:
    """Records a command once, and repeats it as often as asked."""

    name = ""

    def __init__(self, home: Path) -> None:
        self.home = home

    def record(self, *command: str) -> float:
        raise NotImplementedError

    def repeat(self) -> tuple[float, bytes]:
        raise NotImplementedError

    def starting(self) -> float:
        """From the call to the first line of the program."""
        called = time.time_ns()
        _, said = self.repeat()
        line = next(line for line in said.splitlines() if line.startswith(b"began "))
        return (int(line.split()[1]) - called) / 1e9


class Clew(Tool):
    name = "clew"

    def record(self, *command: str) -> float:
        run([CLEW, "init"], self.home)
        wall, _ = run([CLEW, "exec", "--name", "it", "--", *command], self.home)
        return wall

    def repeat(self) -> tuple[float, bytes]:
        return run([CLEW, "repeat", "it"], self.home, fails=True)  # the time it prints differs


class ReproZip(Tool):
    name = "reprozip"

    def __init__(self, home: Path, program: Path) -> None:
        super().__init__(home)
        self._zip = str(program)
        self._unzip = str(peers.reprounzip())
        self._quiet = {"REPROZIP_USAGE_STATS": "off"}

    def record(self, *command: str) -> float:
        run([self._zip, "usage_report", "--disable"], self.home, fails=True)
        run([self._unzip, "usage_report", "--disable"], self.home, fails=True)
        wall, _ = run([self._zip, "trace", "--overwrite", *command], self.home, **self._quiet)
        run([self._zip, "pack", "it.rpz"], self.home, **self._quiet)
        run([self._unzip, "directory", "setup", "it.rpz", "unpacked"], self.home, **self._quiet)
        return wall

    def repeat(self) -> tuple[float, bytes]:
        return run([self._unzip, "directory", "run", "unpacked"], self.home, **self._quiet)


class Sciunit(Tool):
    name = "sciunit"

    def __init__(self, home: Path, program: Path) -> None:
        super().__init__(home)
        self._program = str(program)

    def record(self, *command: str) -> float:
        run([self._program, "create", "-f", "bench"], self.home)
        wall, _ = run([self._program, "exec", *command], self.home)
        return wall

    def repeat(self) -> tuple[float, bytes]:
        return run([self._program, "repeat", "e1"], self.home)


def tools(home: Path) -> Iterator[Tool]:
    """Clew, and each peer that can run here, each in a folder of its own."""
    makers: dict[str, Callable[[Path, Path], Tool]] = {"reprozip": ReproZip, "sciunit": Sciunit}
    yield Clew(_folder(home, "clew"))
    found = peers.find()
    for name, make in makers.items():
        program = found[name].program
        if program is None:
            print(f"{name} cannot run here: {found[name].why}")
        else:
            try:
                yield make(_folder(home, name), program)
            except peers.Unusable as error:
                print(f"{name} cannot run here: {error}")


def _folder(home: Path, name: str) -> Path:
    folder = home / name
    folder.mkdir(parents=True)
    return folder


def starting(home: Path, rounds: int) -> dict[str, float]:
    answers: dict[str, list[float]] = {}
    for tool in tools(home / "starting"):
        for i in range(FILES):
            file = tool.home / "files" / str(i // 100) / f"{i}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{i}\n" * 100)
        (tool.home / "read.py").write_text(READ)
        tool.record("/usr/bin/python3", "read.py", str(FILES))
        tool.starting()
        answers[tool.name] = [tool.starting() for _ in range(rounds)]
    return {name: statistics.median(found) for name, found in answers.items()}


def training(home: Path, rounds: int) -> dict[str, float]:
    """Repeating as a ratio to recording."""
    answers: dict[str, float] = {}
    for tool in tools(home / "training"):
        shutil.copytree(TRAINING, tool.home, dirs_exist_ok=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ["PATH"] = path
        recording = tool.record("./run.sh")
        tool.repeat()
        ratios = []
        for _ in range(rounds):  # in turn: whatever else the machine does touches both alike
            if isinstance(tool, Clew):
                recording = run([CLEW, "exec", "--", "./run.sh"], tool.home)[0]
            ratios.append(tool.repeat()[0] / recording)
        answers[tool.name] = statistics.median(ratios)
    return answers


def incremental(home: Path, rounds: int) -> float:
    folder = _folder(home, "incremental")
    for i in range(PROCESSES - 1):
        (folder / f"part-{i}").write_text("".join(f"{(i * 7919 + j) % 1000}\n" for j in range(500)))
    (folder / "all.sh").write_text(SCRIPT)
    run([CLEW, "init"], folder)
    run([CLEW, "exec", "--name", "it", "--", "sh", "all.sh"], folder)
    once = [CLEW, "repeat", "it", "--incremental"]
    run(once, folder)
    return statistics.median(run(once, folder)[0] for _ in range(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description="What repeating costs.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # reprounzip insists on it
    peers.CACHE.mkdir(parents=True, exist_ok=True)  # not in /tmp: Sciunit does not record that
    with tempfile.TemporaryDirectory(prefix="repeating.", dir=peers.CACHE) as place:
        home = Path(place)
        begun = starting(home, asked.rounds)
        print(f"start-up of a repeat, {FILES} files, in s (must be at most 0.5, and the least)")
        for name, seconds in begun.items():
            print(f"  {name:10} {seconds:8.2f}")
        trained = training(home, asked.rounds)
        print("repeat of the training workflow, as a ratio to recording it (at most 1.1)")
        for name, ratio in trained.items():
            print(f"  {name:10} {ratio:8.2f}")
        seconds = incremental(home, asked.rounds)
        print(f"incremental repeat of {PROCESSES} processes, nothing changed, in s (at most 1)")
        print(f"  clew       {seconds:8.2f}")
    if asked.json is not None:
        found = {"starting": begun, "training": trained, "incremental": seconds}
        asked.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
