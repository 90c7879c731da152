"""What running a pipeline costs, beside the SDK's own local runner and Snakemake.

    python bench/pipelines.py [--rounds 3] [--json FILE]

- a chain of 21 tasks that do nothing, each witnessed: what a task takes is the time from the start
  of the first to the end of the last, as the record tells it, divided by 21;
- what comes before is the command's own start-up: from the moment it is called until its first
  task starts, the start of the worker that forks the tasks included; and what comes after, from the
  end of the last task until the command has ended and all is told;
- the chain again, all of it reused: what each task after the first takes, from end to end. The
  first one waits for what is the same for all (whether anything changed that every task relies
  on), so the time of the whole run stands beside it;
- 20 independent tasks that keep a core busy for half a second each: from the start of the first to
  the end of the last, as a ratio to what the cores would need at best;
- a loop of 1,000 iterations, in the same way, and the most memory that the engine (the command's
  own process; its tasks and workers are smaller) had at any moment, the libraries that it shares
  with others included: with 100 iterations, with 1,000 and with 3,000. It grows until a second
  worker takes the place of the first, beside which it starts, and no more after that.

`kfp.local` runs the same compiled pipelines in subprocesses without virtual environments, Snakemake
the same chain as shell rules; what `kfp.local` takes is the call of the pipeline, without loading
the SDK and the file. Medians over the rounds are printed, beside what they must not exceed, or
must reach.
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
from datetime import datetime
from pathlib import Path
from typing import Any

import peers

CLEW = str(Path(sys.executable).with_name("clew"))
TASKS, LOOP, LONG = 20, 1000, 3000

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


class Ran:
    """One run, by its record and by the clock of whoever called the command."""

    def __init__(self, called: float, ended: float, memory: int, document: dict[str, Any]) -> None:
        tasks = document["tasks"]
        starts = [_moment(task["started"]) for task in tasks]
        ends = [_moment(task["ended"]) for task in tasks]
        self.start_up = min(starts) - called
        self.ending = ended - max(ends)
        self.span = max(ends) - min(starts)
        self.each = self.span / len(tasks)
        self.each_more = (max(ends) - min(ends)) / max(1, len(tasks) - 1)
        self.whole = document["seconds"]
        self.memory = memory / 1024  # MB
        self.states = {task["state"] for task in tasks}


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


class Clew:
    """A project in which pipelines are run."""

    def __init__(self, home: Path, compiled: Path) -> None:
        self._home = home
        self._compiled = compiled
        home.mkdir()
        run([CLEW, "init"], home)
        self("none", "x=-1000")  # what every run reads is stored

    def __call__(self, name: str, *words: str, reused: bool = False) -> Ran:
        """Run a pipeline; `words` are parameters, or options."""
        given = [part for one in words for part in (("-p", one) if "=" in one else (one,))]
        command = [CLEW, "pipeline", "run", f"{self._compiled}/{name}.yaml", *given]
        with tempfile.TemporaryFile() as said:
            called = time.time()
            process = subprocess.Popen(
                command, cwd=self._home, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
            _, status, usage = os.wait4(process.pid, 0)
            ended = time.time()
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read().decode()
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} failed: {text[-2000:]}")
        number = text.rpartition("clew: ")[2].split()[0]
        _, shown = run([CLEW, "pipeline", "show", number, "--json"], self._home)
        ran = Ran(called, ended, usage.ru_maxrss, json.loads(shown))
        if ran.states != {"reused" if reused else "succeeded"}:
            raise SystemExit(f"{' '.join(command)}: its tasks have {ran.states}")
        return ran

    def wide(self) -> float:
        """As a ratio to what the cores would need at best."""
        return self("wide", "--no-cache").span / _ideal()

    def loop(self, count: int, start: int) -> Ran:
        return self("loop", f"items={json.dumps(list(range(start, start + count)))}")


def _ideal() -> float:
    return TASKS * 0.5 / len(os.sched_getaffinity(0))


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
        starts = [f"x={10_000 * (i + 1)}" for i in range(given.rounds)]
        chains = [clew("chain", start) for start in starts]
        again = [clew("chain", start, reused=True) for start in starts]
        small, large = clew.loop(100, 1_000_000), clew.loop(LOOP, 2_000_000)
        larger = clew.loop(LONG, 3_000_000)
        (home / "peers").mkdir()
        chain = statistics.median(ran.each for ran in chains)
        peer = statistics.median(
            local(home, home / "peers", "chain", {"x": start}) / (TASKS + 1)
            for start in range(given.rounds)
        )
        figures = {
            "start-up, until the first task, s": statistics.median(ran.start_up for ran in chains),
            "after the last task, s": statistics.median(ran.ending for ran in chains),
            "chain, ms a task": 1000 * chain,
            "kfp.local: chain, ms a task": 1000 * peer,
            "chain, times faster than kfp.local": peer / chain,
            "chain all reused, ms a task": 1000 * statistics.median(ran.each_more for ran in again),
            "chain all reused, the whole run, ms": 1000
            * statistics.median(ran.whole for ran in again),
            "20 tasks of 0.5 s, to the ideal": statistics.median(
                clew.wide() for _ in range(given.rounds)
            ),
            "kfp.local: 20 tasks of 0.5 s, to the ideal": local(home, home / "peers", "wide", {})
            / _ideal(),
            f"loop of {LOOP}, ms a task": 1000 * large.each,
            "memory of the engine: 100 iterations, MB": small.memory,
            f"memory of the engine: {LOOP} iterations, MB": large.memory,
            f"memory of the engine: {LONG} iterations, MB": larger.memory,
            f"memory of the engine: {LONG}, to {LOOP}": larger.memory / large.memory,
            "snakemake: chain, ms a rule": 1000 * snakemake(home / "peers"),
        }
    most = {
        "start-up, until the first task, s": 0.3,
        "chain, ms a task": 20,
        "chain all reused, ms a task": 2,
        "20 tasks of 0.5 s, to the ideal": 1.15,
        f"loop of {LOOP}, ms a task": 25,
        f"memory of the engine: {LONG}, to {LOOP}": 1.1,
    }
    least = {"chain, times faster than kfp.local": 5}
    for name, value in figures.items():
        said = ""
        if name in most:
            said = f"  at most {most[name]}: {'ok' if value <= most[name] else 'MISSED'}"
        elif name in least:
            said = f"  at least {least[name]}: {'ok' if value >= least[name] else 'MISSED'}"
        print(f"{name:<45} {value:8.2f}{said}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
