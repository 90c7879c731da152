"""The fixed costs of Clew: start and end of an execution, and the smallest queries.

    python bench/startup_time.py [--rounds 15] [--json FILE]

- the wall time of `clew exec -- true`, in a project that has been used before;
- the time from the end of a command that read 5,000 files, all stored already, to Clew's own end;
- the CPU time of `clew --version`, and of `clew list` with 1,000 executions.

Prints medians over the rounds, each with its target.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from clew import db, project_directory
from clew.prov.events import Ended, Started
from clew.prov.graph import Graph

CLEW = str(Path(sys.executable).with_name("clew"))
FILES, EXECUTIONS = 5_000, 1_000

READ = """
import os, sys, time
for i in range(int(sys.argv[1])):
    with open(f"files/{i // 100}/{i}.txt", "rb") as file:
        file.read()
os.write(1, str(time.time_ns()).encode())
os._exit(0)
"""


def run(command: list[str], cwd: Path) -> tuple[float, float, bytes]:
    """Wall and CPU seconds, and what it said."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {errors.decode()[-2000:]}")
    return wall, usage.ru_utime + usage.ru_stime, said


def starting(home: Path) -> float:
    return run([CLEW, "exec", "--", "true"], home)[0]


def ending(home: Path) -> float:
    """From the command's last moment to Clew's end."""
    _, _, said = run([CLEW, "exec", "--", sys.executable, "-c", READ, str(FILES)], home)
    return (time.time_ns() - int(said)) / 1e9


def version(home: Path) -> float:
    return run([CLEW, "--version"], home)[1]


def listing(home: Path) -> float:
    return run([CLEW, "list"], home)[1]


def make_files(home: Path) -> None:
    for i in range(FILES):
        path = home / "files" / str(i // 100) / f"{i}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"the file of number {i}\n" * 50)


def make_executions(root: Path) -> None:
    """As many as asked for, with all that `list` shows of each."""
    project = project_directory.create(root)
    connection = db.connect(project.graph, address=None)
    graph = Graph(connection, project.uid)
    begin = time.time_ns()
    for number in range(EXECUTIONS):
        uid, at = f"{number:032x}", begin + number * 1_000_000_000
        graph.begin(uid)
        command = ("python", "train.py", "--rate", str(number))
        totals = {"processes": 3, "inputs": 900, "outputs": 2, "bytes": 10**8, "new_bytes": 10**5}
        first = {"execution": uid, "activity": uid}
        graph.fold(
            [
                Started(**first, n=1, at=at, kind="execution", agent="bench", command=command),
                Ended(**first, n=2, at=at + 500_000_000, status=0, facets=totals),
            ]
        )
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path, help="write every round's figures to this file")
    options = parser.parse_args()
    # Compiled modules are kept, as where Clew is installed: compiling them is not what is measured.
    for name in [n for n in os.environ if n.startswith(("CLEW_", "PYTHONDONTWRITE"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        used, many = Path(name) / "used", Path(name) / "many"
        project_directory.create(used)
        make_files(used)
        make_executions(many)
        figures: list[tuple[str, float, Callable[[Path], float], Path]] = [
            ("`clew exec -- true`, wall", 0.25, starting, used),
            (f"ending an exec that read {FILES:,} known files, wall", 1.0, ending, used),
            ("`clew --version`, CPU", 0.1, version, used),
            (f"`clew list` with {EXECUTIONS:,} executions, CPU", 0.2, listing, many),
        ]
        for _, _, way, home in figures:
            way(home)  # the first time stores content, compiles .pyc files, migrates
        time.sleep(2.5)  # files changed just now are read again: let them grow old
        starting(used), ending(used)
        print(f"load of the machine at the beginning: {os.getloadavg()[0]:.2f}\n")
        print("| what | median s | target | |\n| --- | --- | --- | --- |")
        found = {}
        for what, must, way, home in figures:
            found[what] = values = [way(home) for _ in range(options.rounds)]
            middle = statistics.median(values)
            print(f"| {what} | {middle:.3f} | {must} | {'ok' if middle <= must else 'MISSED'} |")
        if options.json:
            options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
