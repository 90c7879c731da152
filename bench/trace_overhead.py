"""The overhead of recording, next to ReproZip, Sciunit and strace on the same work in the same run.

    python bench/trace_overhead.py [--rounds 5] [--quick] [--work imports,small]
                                   [--tools clew,strace] [--json FILE]

Three kinds of work, each at least ten seconds of CPU without a tool: imports, training, and a
compilation with make -j2. A fourth, tiny, compiles 100 files of four lines with make -j2, three
short-lived processes each: its wall time has a target too, since it includes the start and the end
of the recorder. The speed of a machine drifts by several per cent within a minute, so every run of
a tool is between two native runs, and its ratio is that to their mean; each round starts with
another tool. The fifth kind is reads and writes of one byte, compared with the same under a filter
that allows everything. It represents long work: thirty seconds, so that start and end, which
startup_time.py measures, weigh little; tools that stop at every call do a fifteenth of it. Here and
in training a few per cent matter, less than the drift between two runs, so all tools run
interleaved (interleaved_runs.py).

Prints the median over the rounds, the minimum and maximum, and in how many rounds the target was
met. CPU is user and system time of the whole process tree, the tool included. Clew has the content
already (a first run, not measured, stores it). `--quick` is one round of small work, to check that
everything runs.
"""

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
from pathlib import Path
from typing import ClassVar, NamedTuple

import peers
from interleaved_runs import Cost, run_interleaved

from clew.witness.tracer_binary import LIBRARY, TRACER

SOURCES = Path(__file__).resolve().parent / "work"
CLEW = Path(sys.executable).with_name("clew")
NATIVE, BARE = "native", "bare seccomp"
FEWER = 15
PEERS = ("strace", "reprozip", "sciunit")


class Beside(NamedTuple):
    """What a tool took, and the mean of what it is compared with took before and after it."""

    own: Cost
    base: Cost


class Tool(NamedTuple):
    name: str
    prefix: list[str]
    env: dict[str, str] = {}
    why: str = ""


class Work:
    """Something to run: `size` of its units, in a folder of its own."""

    name: str
    must: float
    must_wall: float | None = None
    against = NATIVE
    seconds = 10.0
    env: ClassVar[dict[str, str]] = {}
    least = 1
    """Units without which it would not be this kind of work."""
    slice: int | None = None
    """Units of one turn, where all tools are at it at the same time."""
    apart: tuple[str, ...] = ()
    """Tools that are too slow to interleave."""

    def __init__(self, home: Path, python: Path) -> None:
        self.folder = home / self.name
        self.folder.mkdir()
        self.python = str(python)
        self.size = self.least
        self.prepare()

    def prepare(self) -> None: ...

    def reset(self) -> None: ...

    def command(self, size: int) -> list[str]:
        raise NotImplementedError


class Imports(Work):
    name, must = "imports", 1.12

    def command(self, size: int) -> list[str]:
        loop = f"for i in $(seq {size}); do {self.python} -c 'import sklearn, pandas' || exit; done"
        return ["sh", "-c", loop]


class Training(Work):
    name, must, slice = "training", 1.04, 1
    # Threads that wait for each other sleep: awake, they burn as much CPU as the work itself, more
    # or less as luck has it.
    env: ClassVar = {"OMP_WAIT_POLICY": "passive"}

    def command(self, size: int) -> list[str]:
        return [self.python, str(SOURCES / "train.py"), str(size)]


HEADERS = (
    *("stdio", "stdlib", "string", "math", "time", "errno", "ctype", "signal", "unistd"),
    *("sys/stat", "pthread"),
)
FUNCTION = """
double f{number}_{i}(double x, int n)
{{
	char text[64];
	for (int i = 0; i < n; i++)
		x = sin(x + {i}) * i;
	snprintf(text, sizeof text, "%g", x);
	return strlen(text) + atof(text);
}}
"""


class Compiling(Work):
    name, must, least = "compile", 1.25, 100

    def prepare(self) -> None:
        self._written = 0
        (self.folder / "main.c").write_text("int main(void) { return 0; }\n")

    def _write(self, count: int) -> None:
        """Only what is not there: a file whose times have not changed is known already."""
        for number in range(self._written, count):
            (self.folder / f"part{number}.c").write_text(self.source(number))
        self._written = count
        objects = " ".join(f"part{number}.o" for number in range(count))
        (self.folder / "Makefile").write_text(
            f"program: main.o {objects}\n\t$(CC) -o $@ $^ -lm\n.c.o:\n\t$(CC) -O1 -c -o $@ $<\n"
        )

    def source(self, number: int) -> str:
        includes = "".join(f"#include <{header}.h>\n" for header in HEADERS)
        return includes + "".join(FUNCTION.format(number=number, i=i) for i in range(10))

    def reset(self) -> None:
        if self._written != self.size:
            self._write(self.size)
        for path in [*self.folder.glob("*.o"), self.folder / "program"]:
            path.unlink(missing_ok=True)

    def command(self, size: int) -> list[str]:
        return ["make", "-s", "-j2"]


class Tiny(Compiling):
    name, must, must_wall, seconds = "tiny", 1.25, 1.3, 0.0  # 100 files, however long they take

    def source(self, number: int) -> str:
        lines = ("#include <stdio.h>", f"int f{number}(int x)", '{ return printf("%d", x); }')
        return "\n".join((*lines, f"int n{number};\n"))


class Small(Work):
    name, must, against, seconds, least = "small", 1.03, BARE, 30.0, 100_000
    slice, apart = 150_000, ("reprozip", "sciunit")

    def prepare(self) -> None:
        self.program = compiled(self.folder, "small")

    def command(self, size: int) -> list[str]:
        return [str(self.program), str(size)]


WORKS: dict[str, type[Work]] = {w.name: w for w in (Imports, Training, Compiling, Tiny, Small)}


def compiled(folder: Path, name: str) -> Path:
    program = folder / name
    subprocess.run(["cc", "-O2", "-o", program, SOURCES / f"{name}.c"], check=True)
    return program


# -- running


def run(tool: Tool, work: Work, size: int) -> Cost:
    work.reset()
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [*tool.prefix, *work.command(size)],
            cwd=work.folder,
            env={**os.environ, **work.env, **tool.env},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")[-1000:]
            raise SystemExit(f"{tool.name} on {work.name} failed: {process.returncode}\n{text}")
    if isinstance(work, Compiling) and not (work.folder / "program").exists():
        raise SystemExit(f"{tool.name} did not do the work: {work.name}")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


def fit(work: Work, seconds: float) -> None:
    """Size the work; by CPU time, which a busy machine disturbs less."""
    native = Tool(NATIVE, [])
    run(native, work, work.size)  # the first one may compile .pyc files
    while (cost := run(native, work, work.size).cpu) < seconds:
        more = 1.1 * seconds / max(cost, 0.05)
        work.size = max(work.size + 1, math.ceil(work.size * min(more, 50)))


def tools(home: Path, found: dict[str, peers.Peer]) -> list[Tool]:
    trace = ["-f", "--seccomp-bpf", "-e", "trace=%file,%process", "-o", "/dev/null"]
    alone = [str(TRACER), "--out", str(home / "trace"), "--library", str(LIBRARY), "--"]
    inner = home / "home"
    inner.mkdir()
    words = {
        "strace": trace,
        "reprozip": ["trace", "-w", "-d", str(home / "reprozip")],
        "sciunit": ["exec"],
    }
    env = {"HOME": str(inner)}
    listed = [
        Tool(NATIVE, []),
        Tool(BARE, [str(compiled(home, "bare"))]),
        Tool("clew exec", [str(CLEW), "exec", "--"]),
        Tool("clew-trace", alone),
    ]
    for name, peer in found.items():
        prefix = [str(peer.program), *words[name]] if peer.program else []
        listed.append(Tool(name, prefix, {} if name == "strace" else env, peer.why))
    quietly(found["reprozip"].program, ["usage_report", "--disable"], env)
    quietly(found["sciunit"].program, ["create", "bench"], env)
    return listed


def quietly(program: Path | None, words: list[str], env: dict[str, str]) -> None:
    if program:
        subprocess.run(
            [program, *words],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


def measure(work: Work, listed: list[Tool], rounds: int) -> dict[str, list[Beside]]:
    """For each tool, what it took in each round."""
    subprocess.run([CLEW, "init"], cwd=work.folder, capture_output=True, check=True)
    base = next(tool for tool in listed if tool.name == work.against)
    others = [t for t in listed if t.name not in (BARE, base.name) and not t.why]
    costs: dict[str, list[Beside]] = {tool.name: [] for tool in others}
    for tool in others:
        if tool.name == "clew exec":
            run(tool, work, work.size)
    for number in range(rounds):
        shift = number % len(others)
        rotated = others[shift:] + others[:shift]
        found = (
            compare_interleaved(work, base, rotated) if work.slice else between(work, base, rotated)
        )
        for name, (own, beside) in found.items():
            costs[name].append(Beside(own, beside))
            told = f"{own.cpu:.2f} s CPU beside {beside.cpu:.2f}"
            print(f"  {number + 1} {name}: {told}", file=sys.stderr)
    return costs


def between(work: Work, base: Tool, others: list[Tool]) -> dict[str, Beside]:
    """Each tool between two runs of what it is compared with."""
    found: dict[str, Beside] = {}
    before = run(base, work, work.size)
    for tool in others:
        own, after = run(tool, work, work.size), run(base, work, work.size)
        found[tool.name] = Beside(own, mean(before, after))
        before = after
    return found


def compare_interleaved(work: Work, base: Tool, others: list[Tool]) -> dict[str, Beside]:
    """Run all interleaved; those that are too slow, apart and with less to do."""
    assert work.slice
    found: dict[str, Beside] = {}
    slow = [[tool] for tool in others if tool.name in work.apart]
    for some in [[t for t in others if t.name not in work.apart], *slow]:
        size = work.size // (FEWER if some in slow else 1)
        tools = {t.name: (t.prefix, {**os.environ, **work.env, **t.env}) for t in (base, *some)}
        costs = run_interleaved(tools, work.command(size), max(size // work.slice, 1), work.folder)
        found |= {tool.name: Beside(costs[tool.name], costs[base.name]) for tool in some}
    return found


def mean(first: Cost, last: Cost) -> Cost:
    return Cost((first.cpu + last.cpu) / 2, (first.wall + last.wall) / 2)


# -- telling


def ratios(costs: list[Beside], field: str) -> list[float]:
    return [getattr(own, field) / max(getattr(base, field), 1e-9) for own, base in costs]


def median(costs: list[Beside], field: str) -> float:
    return statistics.median(ratios(costs, field))


def report(work: Work, listed: list[Tool], costs: dict[str, list[Beside]]) -> bool:
    took = statistics.median(base.cpu for found in costs.values() for _, base in found)
    print(f"\n## {work.name} ({took:.1f} s of CPU: {work.against})\n")
    print(f"| tool | CPU, ratio to {work.against} | least, greatest | wall |")
    print("| --- | --- | --- | --- |")
    for tool in listed:
        if tool.name in costs:
            found = costs[tool.name]
            cpu, wall = ratios(found, "cpu"), median(found, "wall")
            middle = f"{statistics.median(cpu):.3f} | {min(cpu):.3f}, {max(cpu):.3f}"
            print(f"| {tool.name} | {middle} | {wall:.3f} |")
        elif tool.why:
            print(f"| {tool.name} | cannot run here: {tool.why} | | |")
    return "clew exec" not in costs or holds(work, costs)


def holds(work: Work, costs: dict[str, list[Beside]]) -> bool:
    own = costs["clew exec"]
    held = within(work, "CPU", ratios(own, "cpu"), work.must)
    if work.must_wall is not None:
        held = within(work, "wall", ratios(own, "wall"), work.must_wall) and held
    for name in PEERS:
        if name in costs:
            below = median(own, "cpu") < median(costs[name], "cpu")
            print(f"below {name}: {'ok' if below else 'MISSED'}")
            held = held and below
    return held


def within(work: Work, what: str, found: list[float], target: float) -> bool:
    held = statistics.median(found) <= target
    times = sum(ratio <= target for ratio in found)
    print(
        f"\nclew exec, {what}, ratio to {work.against}: {statistics.median(found):.3f};"
        f" target: at most {target}: {'ok' if held else 'MISSED'}"
        f" (held in {times} of {len(found)} rounds)"
    )
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one round of small work")
    parser.add_argument("--work", default=",".join(WORKS), help="which kinds, with commas")
    parser.add_argument(
        "--tools", default="clew,strace,reprozip,sciunit", help="which, with commas"
    )
    parser.add_argument("--json", type=Path, help="write every round's figures to this file")
    options = parser.parse_args()
    rounds = 1 if options.quick else options.rounds
    # Compiled modules are kept, as where Clew is installed: compiling them is not what is measured.
    for name in [n for n in os.environ if n.startswith(("CLEW_", "PYTHONDONTWRITE"))]:
        del os.environ[name]
    python, found = peers.work_python(), peers.find()
    # Not under /tmp: Sciunit leaves out what is there, and would be measured doing less.
    home = Path(tempfile.mkdtemp(prefix="run-", dir=peers.CACHE))
    try:
        wanted = {NATIVE, BARE, *options.tools.split(",")}
        listed = [t for t in tools(home, found) if {t.name, t.name.split()[0]} & wanted
                  or (t.name == "clew-trace" and "clew" in wanted)]  # fmt: skip
        print(f"load of the machine at the beginning: {os.getloadavg()[0]:.2f}")
        if options.quick:
            print("too little work, and once only: these are no figures")
        everything = {}
        for name in options.work.split(","):
            work = WORKS[name](home, python)
            fit(work, 0.5 if options.quick else work.seconds)
            everything[name] = costs = measure(work, listed, rounds)
            report(work, listed, costs)
        if options.json:
            options.json.write_text(json.dumps(everything, indent=1) + "\n")
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
