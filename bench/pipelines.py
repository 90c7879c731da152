"""The overhead of a pipeline, compared with the SDK's own local runner and with Snakemake.

    python bench/pipelines.py [--rounds 5] [--before CLEW] [--json FILE]

The machine's speed and load differ from run to run, so the targets are ratios: every round measures
Clew and its peers one after the other, and each figure is the median of the rounds' ratios.

- Chain: 21 tasks that do nothing, each recorded. The time of a task is the time from the start of
  the first to the end of the last, divided by 21.
- Start-up: from the call of the command to the start of its first task, with the start of the
  worker that forks the tasks. `--before` names the `clew` of an earlier version, which runs the
  same chain in the same rounds: start-up is then given as a ratio to it.
- Reused: the chain again, all of it reused: the time between the end of the first task and the end
  of the last, per task. The first one waits for what is checked once a run, so the whole run is
  given, too.
- Slope: the difference between the whole commands for a chain of 61 and one of 21, divided by 40,
  so that start-up drops out; for Snakemake the difference between two targets of one Snakefile.
  Its rules are `shell: "true"`, and Python functions (`run:`), which it starts a Python for.
  CPU time is that of all processes, where `perf` is installed.
- Wide: 20 independent tasks that keep a core busy for half a second each: from the start of the
  first to the end of the last, as a ratio to the least that the cores would need.
- Loop: 1,000 iterations, and the peak memory of the engine (the command's own process; its tasks
  and workers are smaller), shared libraries included, with 100, 1,000 and 3,000 iterations. It
  grows until a second worker replaces the first, beside which it starts, and not after that.

`kfp.local` runs the same compiled pipelines in subprocesses without virtual environments; its time
is that of the call of the pipeline, without loading the SDK and the file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import peers

CLEW = str(Path(sys.executable).with_name("clew"))
TASKS, MORE, LOOP, LONG = 20, 60, 1000, 3000
PERF = shutil.which("perf")

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

@dsl.pipeline(name="longer")
def longer(x: int = 0):
    last = step(x=x)
    for _ in range({MORE}):
        last = step(x=last.output)

@dsl.pipeline(name="wide")
def wide(x: int = 0):
    for i in range({TASKS}):
        busy(x=i)

@dsl.pipeline(name="loop")
def loop(items: List[int]):
    with dsl.ParallelFor(items) as item:
        step(x=item)

for one in (none, chain, longer, wide, loop):
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


def snakefile(body: str) -> str:
    """A chain of rules, each of which has its own target."""
    rules = ['rule s0:\n    output: touch("s-0")\n    ' + body]
    rules += [
        f'rule s{i}:\n    input: "s-{i - 1}"\n    output: touch("s-{i}")\n    {body}'
        for i in range(1, MORE + 1)
    ]
    return "\n".join(rules) + "\n"


class Cost(NamedTuple):
    """Seconds. CPU is that of all processes; not a number where nothing can tell."""

    wall: float
    cpu: float

    def per(self, count: int, *, less: Cost) -> Cost:
        return Cost((self.wall - less.wall) / count, (self.cpu - less.cpu) / count)


def measured(command: list[str], cwd: Path) -> Cost:
    with tempfile.NamedTemporaryFile() as told:
        words = [PERF, "stat", "-x", ",", "-e", "task-clock", "-o", told.name] if PERF else []
        wall, _ = run([*words, *command], cwd)
        text = Path(told.name).read_text()
    found = [line.split(",")[0] for line in text.splitlines() if "task-clock" in line]
    return Cost(wall, float(found[0]) / 1000 if found else math.nan)


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
    """One run, by its record and by the clock of the caller of the command."""

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

    def __init__(self, home: Path, compiled: Path, program: str = CLEW) -> None:
        self._home = home
        self._compiled = compiled
        self._program = program
        home.mkdir()
        run([program, "init"], home)
        self("none", "x=-1000")  # what every run reads is stored

    def __call__(self, name: str, *words: str, reused: bool = False) -> Ran:
        """Run a pipeline; `words` are parameters, or options."""
        given = [part for one in words for part in (("-p", one) if "=" in one else (one,))]
        command = [self._program, "pipeline", "run", f"{self._compiled}/{name}.yaml", *given]
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
        _, shown = run([self._program, "pipeline", "show", number, "--json"], self._home)
        ran = Ran(called, ended, usage.ru_maxrss, json.loads(shown))
        if ran.states != {"reused" if reused else "succeeded"}:
            raise SystemExit(f"{' '.join(command)}: its tasks have {ran.states}")
        return ran

    def slope(self, start: int) -> Cost:
        """What one more task of a chain costs."""
        short, long = (
            measured(
                [self._program, "pipeline", "run", f"{self._compiled}/{name}.yaml", "-p", f"x={x}"],
                self._home,
            )
            for name, x in (("chain", start), ("longer", start + 1000))
        )
        return long.per(MORE - TASKS, less=short)

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


def snakemake(home: Path, body: str, short: int, long: int) -> Cost:
    """What one more rule of a chain costs."""
    (home / "Snakefile").write_text(snakefile(body))
    words = [str(peers.snakemake()), "--cores", "2", "--quiet", "all", "--forceall", "--"]
    first, second = (measured([*words, f"s-{count}"], home) for count in (short, long))
    return second.per(long - short, less=first)


class Round(NamedTuple):
    """What was measured one after the other."""

    ran: Ran
    reused: Ran
    before: Ran | None
    local: float
    slope: Cost
    shell: Cost


def measure(clew: Clew, before: Clew | None, home: Path, number: int) -> Round:
    start = 10_000 * number
    return Round(
        clew("chain", f"x={start}"),
        clew("chain", f"x={start}", reused=True),
        before("chain", f"x={start}") if before else None,
        local(home, home / "peers", "chain", {"x": start}) / (TASKS + 1),
        clew.slope(start + 5000),
        snakemake(home / "peers", 'shell: "true"', TASKS, MORE),
    )


def chains(rounds: list[Round], function: Cost) -> dict[str, float]:
    """`function`: of a Snakemake rule that is a Python function."""

    def median(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    figures = {
        "start-up, until the first task, s": median(lambda one: one.ran.start_up),
        "after the last task, s": median(lambda one: one.ran.ending),
        "chain, ms a task": 1000 * median(lambda one: one.ran.each),
        "kfp.local: chain, ms a task": 1000 * median(lambda one: one.local),
        FASTER: median(lambda one: one.local / one.ran.each),
        "chain all reused, ms a task": 1000 * median(lambda one: one.reused.each_more),
        "chain all reused, the whole run, ms": 1000 * median(lambda one: one.reused.whole),
        REUSED: median(lambda one: one.local / one.reused.each_more),
        "slope, ms a task": 1000 * median(lambda one: one.slope.wall),
        "slope, CPU ms a task": 1000 * median(lambda one: one.slope.cpu),
        "snakemake: shell, ms a rule": 1000 * median(lambda one: one.shell.wall),
        "snakemake: shell, CPU ms a rule": 1000 * median(lambda one: one.shell.cpu),
        "snakemake: Python function, ms a rule": 1000 * function.wall,
        "snakemake: Python function, CPU ms a rule": 1000 * function.cpu,
        SNAKEMAKE: median(lambda one: one.slope.wall / one.shell.wall),
        f"{SNAKEMAKE}, CPU": median(lambda one: one.slope.cpu / one.shell.cpu),
    }
    if rounds[0].before:
        figures[BEFORE] = median(
            lambda one: one.ran.start_up / one.before.start_up if one.before else math.nan
        )
    return figures


FASTER = "chain, times faster than kfp.local"
REUSED = "reused, times faster than a kfp.local task"
SNAKEMAKE = "slope, to a shell rule of Snakemake"
BEFORE = "start-up, to that of --before"
MOST = {
    BEFORE: 0.5,
    SNAKEMAKE: 1,
    "20 tasks of 0.5 s, to the ideal": 1.15,
    f"loop of {LOOP}, to the chain": 2,
    f"memory of the engine: {LONG}, to {LOOP}": 1.1,
}
LEAST = {FASTER: 8, REUSED: 80}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--before", metavar="CLEW", help="the clew of an earlier version")
    parser.add_argument("--only-chains", action="store_true", help="neither wide nor loops")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as a user's shell
    print(f"load of the machine at the beginning: {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        home = Path(folder)
        (home / "peers").mkdir()
        (home / "pipelines.py").write_text(PIPELINES)
        run([sys.executable, "-W", "ignore", "pipelines.py", folder], home)
        clew = Clew(home / "clew", home)
        before = Clew(home / "before", home, given.before) if given.before else None
        rounds = [measure(clew, before, home, number + 1) for number in range(given.rounds)]
        figures = chains(rounds, snakemake(home / "peers", "run: pass", 0, 3))
        if not given.only_chains:
            small, large = clew.loop(100, 1_000_000), clew.loop(LOOP, 2_000_000)
            larger = clew.loop(LONG, 3_000_000)
            figures |= {
                "20 tasks of 0.5 s, to the ideal": statistics.median(
                    clew.wide() for _ in range(given.rounds)
                ),
                "kfp.local: 20 tasks of 0.5 s, to the ideal": local(
                    home, home / "peers", "wide", {}
                )
                / _ideal(),
                f"loop of {LOOP}, ms a task": 1000 * large.each,
                f"loop of {LOOP}, to the chain": large.each / rounds[-1].ran.each,
                "memory of the engine: 100 iterations, MB": small.memory,
                f"memory of the engine: {LOOP} iterations, MB": large.memory,
                f"memory of the engine: {LONG} iterations, MB": larger.memory,
                f"memory of the engine: {LONG}, to {LOOP}": larger.memory / large.memory,
            }
    for name, value in figures.items():
        verdict = ""
        if name in MOST:
            verdict = f"  at most {MOST[name]}: {'ok' if value <= MOST[name] else 'MISSED'}"
        elif name in LEAST:
            verdict = f"  at least {LEAST[name]}: {'ok' if value >= LEAST[name] else 'MISSED'}"
        print(f"{name:<45} {value:8.2f}{verdict}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
