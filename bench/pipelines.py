"""What running a pipeline costs, beside the SDK's own local runner and Snakemake.

    python bench/pipelines.py [--rounds 3] [--json FILE]

- a chain of 20 tasks that do nothing, each witnessed: the time of a task is what 20 tasks take more
  than none, divided by 20; what the command takes by itself stands beside it;
- 20 independent tasks that keep a core busy for half a second each, as a ratio to the ideal;
- the chain again, all of it reused;
- a loop of 1,000 iterations, with the memory of the engine after 100 and after 1,000.

`kfp.local` runs the same compiled pipelines in subprocesses without virtual environments, Snakemake
the same chain as shell rules. Medians over the rounds are printed, beside what they must not
exceed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers

CLEW = str(Path(sys.executable).with_name("clew"))
TASKS, LOOP = 20, 1000

PIPELINES = f"""
import sys
from typing import List
from kfp import compiler, dsl

@dsl.component(install_kfp_package=False)
def step(x: int) -> int:
    return x + 1

@dsl.component(install_kfp_package=False)
def busy(x: int) -> int:
    import time
    since = time.process_time()
    while time.process_time() - since < 0.5:
        x += 1
    return 0

@dsl.pipeline(name="none")
def none(x: int = 0):
    step(x=x)

@dsl.pipeline(name="chain")
def chain(x: int = 0):
    last = step(x=x)
    for _ in range({TASKS}):
        last = step(x=last.output)

@dsl.pipeline(name="wide")
def wide(x: int = 0):
    for i in range({TASKS}):
        busy(x=i)

@dsl.pipeline(name="loop")
def loop(items: List[int]):
    with dsl.ParallelFor(items) as item:
        step(x=item)

for one in (none, chain, wide, loop):
    compiler.Compiler().compile(one, f"{{sys.argv[1]}}/{{one.name}}.yaml")
"""
LOCAL = """
import sys, time
from kfp import components, local
local.init(local.SubprocessRunner(use_venv=False), raise_on_error=True, enable_caching=False)
pipeline = components.load_component_from_file(sys.argv[1])
begin = time.perf_counter()
pipeline(**eval(sys.argv[2]))
print("took", time.perf_counter() - begin)
"""

SNAKEFILE = f"""
rule all:
    input: "step-{TASKS}"
rule first:
    output: "step-0"
    shell: "echo 0 > {{output}}"
""" + "".join(
    f"""
rule step{i}:
    input: "step-{i - 1}"
    output: "step-{i}"
    shell: "cp {{input}} {{output}}"
"""
    for i in range(1, TASKS + 1)
)


def run(command: list[str], cwd: Path) -> tuple[float, str]:
    """Wall seconds, and what it said."""
    begin = time.perf_counter()
    done = subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    wall = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-2000:]}")
    return wall, done.stdout + done.stderr


class Clew:
    """A project in which pipelines are run."""

    def __init__(self, home: Path, compiled: Path) -> None:
        self._home = home
        self._compiled = compiled
        home.mkdir()
        run([CLEW, "init"], home)
        self(f"{compiled}/none.yaml", "x=-1000")  # what every run reads is stored

    def __call__(self, file: str, *parameters: str) -> float:
        words = [word for one in parameters for word in ("-p", one)]
        return run([CLEW, "pipeline", "run", file, *words], self._home)[0]

    def chain(self, start: int) -> tuple[float, float]:
        """Seconds of a command with one task, and of each task more."""
        none = self(f"{self._compiled}/none.yaml", f"x={start}")
        whole = self(f"{self._compiled}/chain.yaml", f"x={start + 1}")
        return none, (whole - none) / TASKS

    def again(self, start: int) -> float:
        """The same, of which nothing is run."""
        none = self(f"{self._compiled}/none.yaml", f"x={start}")
        whole = self(f"{self._compiled}/chain.yaml", f"x={start + 1}")
        return (whole - none) / TASKS

    def wide(self) -> float:
        """As a ratio to what the cores would need at best."""
        none = self(f"{self._compiled}/none.yaml", "x=-1000")
        ideal = TASKS * 0.5 / len(os.sched_getaffinity(0))
        run_ = [CLEW, "pipeline", "run", "--no-cache", f"{self._compiled}/wide.yaml"]
        return (run(run_, self._home)[0] - none) / ideal

    def loop(self, count: int, start: int) -> tuple[float, float]:
        """Seconds of an iteration, and the greatest memory of the engine in MB."""
        items = f"items={json.dumps(list(range(start, start + count)))}"
        words = [CLEW, "pipeline", "run", f"{self._compiled}/loop.yaml", "-p", items]
        measured = ["/usr/bin/time", "-f", "%M", *words]
        wall, said = run(measured, self._home)
        none = self(f"{self._compiled}/none.yaml", "x=-1000")
        return (wall - none) / count, int(said.split()[-1]) / 1024


def local(compiled: Path, home: Path, name: str, arguments: dict[str, object]) -> float:
    """Seconds that `kfp.local` takes, its own start-up left out."""
    _, said = run(
        [sys.executable, "-W", "ignore", "-c", LOCAL, f"{compiled}/{name}.yaml", repr(arguments)],
        home,
    )
    return float(said.split("took ")[-1])


def snakemake(home: Path) -> float:
    """Seconds of each rule of the chain."""
    program = str(peers.snakemake())
    (home / "Snakefile").write_text(SNAKEFILE)
    words = [program, "--cores", "2", "--quiet", "all", "--forceall", "--"]
    whole, _ = run([*words, f"step-{TASKS}"], home)
    first, _ = run([*words, "step-0"], home)
    return (whole - first) / TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"load of the machine at the beginning: {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        home = Path(folder)
        (home / "pipelines.py").write_text(PIPELINES)
        run([sys.executable, "-W", "ignore", "pipelines.py", folder], home)
        clew = Clew(home / "clew", home)
        starts = [10_000 * (i + 1) for i in range(given.rounds)]
        chains = [clew.chain(start) for start in starts]
        figures = {
            "start-up, with one task, s": statistics.median(none for none, _ in chains),
            "chain, ms a task": 1000 * statistics.median(each for _, each in chains),
            "chain all reused, ms a task": 1000
            * statistics.median(clew.again(start) for start in starts),
            "20 tasks of 0.5 s, to the ideal": statistics.median(
                clew.wide() for _ in range(given.rounds)
            ),
        }
        _, small = clew.loop(100, 1_000_000)
        each, large = clew.loop(LOOP, 2_000_000)
        figures |= {
            f"loop of {LOOP}, ms a task": 1000 * each,
            "memory of the engine: 100 iterations, MB": small,
            f"memory of the engine: {LOOP} iterations, MB": large,
        }
        (home / "peers").mkdir()
        figures["kfp.local: chain, ms a task"] = 1000 * statistics.median(
            local(home, home / "peers", "chain", {"x": start}) / (TASKS + 1)
            for start in range(given.rounds)
        )
        figures["kfp.local: 20 tasks of 0.5 s, to the ideal"] = local(
            home, home / "peers", "wide", {}
        ) / (TASKS * 0.5 / len(os.sched_getaffinity(0)))
        figures["snakemake: chain, ms a rule"] = 1000 * snakemake(home / "peers")
    most = {
        "start-up, with one task, s": 0.3,
        "chain, ms a task": 20,
        "chain all reused, ms a task": 2,
        "20 tasks of 0.5 s, to the ideal": 1.15,
        f"loop of {LOOP}, ms a task": 25,
    }
    for name, value in figures.items():
        bound = most.get(name)
        said = "" if bound is None else f"  at most {bound}: {'ok' if value <= bound else 'MISSED'}"
        print(f"{name:<45} {value:8.2f}{said}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
