"""How fast events fold, and how fast lineage, lists and the rest are answered.

    python bench/graph.py [--edges N] [--graph ADDRESS] [--json]

The graph is that of a long-lived project: executions of several processes, each reading the
files of its interpreter and packages, looking for many more, reading what an earlier execution
wrote and writing for a later one. The mix (per process: 60 reads of packages' files, 3 of data,
120 looks, 2 writes) is that of a recorded Python program that imports a few libraries.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from blake3 import blake3

from clew.db import connect
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Generated,
    Informed,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.graph import Graph
from clew.prov.queries.executions import list_executions
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.show import show_execution
from clew.prov.queries.targets import resolve_target

PROCESSES, OWNED, LOOKS, WRITES = 8, 60, 120, 2
DATA = WRITES + 1
EDGES = PROCESSES * (OWNED + DATA + WRITES) + PROCESSES - 1
MACHINE = "0123456789abcdef0123456789abcdef"


def place(path: str) -> str:
    return f"file://{MACHINE}{path}"


def digest(text: str) -> str:
    return f"blake3:{blake3(text.encode()).hexdigest()}"


LIBRARY = digest("library")


def data(i: int, p: int) -> Iterator[tuple[Version, str | None]]:
    """What process p reads of the user's: the work before it, and the raw data."""
    execution = f"{i:032x}"
    for f in range(WRITES):
        if p:
            yield Version(place(f"/home/u/p/part{p - 1}-{f}"), f"0badcafe-{i}-{p - 1}-0", 1), None
        else:
            path = f"/home/u/p/out-{max(i - 1, 0)}-{f}"
            yield Version(place(path), execution, 1), digest(path)
    yield Version(place("/home/u/p/raw.csv"), execution, 1), None if p else digest("raw")


def told(i: int) -> Iterator[AnyEvent]:
    """One execution: its processes read what the one before wrote, and what execution i-1 wrote."""
    execution = f"{i:032x}"
    number = 0
    at = 1_700_000_000_000_000_000 + i * 60_000_000_000

    def event(what: type, **fields: object) -> AnyEvent:
        nonlocal number
        number += 1
        return what(execution=execution, n=number, at=at + number * 1000, **fields)

    def content(version: Version, held: str, package: str | None = None) -> AnyEvent:
        return event(
            Content, version=version, digest=held, size=1000, mode=0o100644, mtime=at,
            package=package,
        )  # fmt: skip

    yield event(
        Started, activity=execution, kind="execution", command=("make", "all"), cwd="/home/u/p",
        agent="u", facets={"cpu": {"model": "x" * 40, "flags": "f" * 800}},
        environment={f"V{j}": "v" * 40 for j in range(40)},
    )  # fmt: skip
    found: set[int] = set()
    for p in range(PROCESSES):
        process = f"0badcafe-{i}-{p}-0"
        yield event(
            Started, activity=process, kind="process", parent=execution, number=p + 1,
            pid=1000 + p, command=("python", f"step{p}.py"), exe="/usr/bin/python3",
            cwd="/home/u/p",
        )  # fmt: skip
        for f in range(OWNED):
            library = p * 7 + f
            version = Version(
                place(f"/usr/lib/python3/dist-packages/pkg/m{library}.py"), execution, 1
            )
            yield event(Used, activity=process, version=version)
            if library not in found:
                found.add(library)
                yield content(version, LIBRARY, "pkg:deb/debian/python3-pkg@1.0")
        for f in range(LOOKS):
            path = f"/usr/lib/python3/dist-packages/pkg/no{(p * 31 + f) % 400}.so"
            yield event(Looked, activity=process, kind="absent", locator=place(path))
        for version, held in data(i, p):
            yield event(Used, activity=process, version=version)
            if held:
                yield content(version, held)
        for f in range(WRITES):
            last = p == PROCESSES - 1
            path = f"/home/u/p/out-{i}-{f}" if last else f"/home/u/p/part{p}-{f}"
            version = Version(place(path), process, 1)
            yield event(Generated, activity=process, version=version)
            yield content(version, digest(path if last else f"{i} {path}"))
        if p:
            yield event(Informed, activity=process, by=f"0badcafe-{i}-{p - 1}-0", via="pipe")
        yield event(Ended, activity=process, status=0)
    yield event(
        Ended, activity=execution, status=0,
        facets={"processes": PROCESSES, "inputs": 200, "outputs": 2, "bytes": 5, "new_bytes": 1},
    )  # fmt: skip


def measured(work: Callable[[], object], rounds: int = 5) -> tuple[float, float]:
    """Wall and CPU milliseconds, the median of some rounds."""
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls) * 1000, statistics.median(cpus) * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--graph", help="a PostgreSQL address")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    count = options.edges // EDGES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.db"
        graph = Graph(connect(path, address=options.graph), f"{time.time_ns():032x}")
        figures = run(graph, count)
        if options.graph is None:
            figures["file_mb"] = round(path.stat().st_size / 1e6)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:24} {figure}")


def run(graph: Graph, count: int) -> dict[str, float]:
    events, wall, cpu = 0, 0.0, 0.0
    for i in range(count):
        batch = list(told(i))
        events += len(batch)
        before, spent = time.perf_counter(), time.process_time()
        graph.fold(batch)
        wall += time.perf_counter() - before
        cpu += time.process_time() - spent
    figures: dict[str, float] = {
        "executions": count, "events": events, "edges": count * EDGES,
        "fold_events_per_s": round(events / wall), "fold_events_per_cpu_s": round(events / cpu),
    }  # fmt: skip

    def target(text: str) -> object:
        return resolve_target(
            graph, text, machine=MACHINE, locate=lambda p: b"/home/u/p/" + p,
            digest_of=lambda _: digest("raw"),
        )  # fmt: skip

    def trace(text: str, direction: str, depth: int | None) -> Callable[[], object]:
        return lambda: trace_lineage(graph, target(text), direction=direction, depth=depth)  # type: ignore[arg-type]

    early = min(count, 40)
    here = f"e{count // 2}:out-{count // 2 - 1}-0"
    work: dict[str, Callable[[], object]] = {
        "lineage_up_10_steps": trace(here, "up", 10),
        "lineage_up_100_steps": trace(here, "up", 100),
        "lineage_up_all": trace(f"e{early}:out-{early - 1}-0", "up", None),
        "lineage_down_10_steps": trace(here, "down", 10),
        "lineage_of_path": trace("raw.csv", "up", None),
        "lineage_down_of_raw": trace("raw.csv", "down", 1),
        "list": lambda: list_executions(graph, alive=lambda _: False),
        "show_detail": lambda: show_execution(graph, "e7", alive=lambda _: False, detail=True),
    }
    for name, question in work.items():
        took, cpu = measured(question)
        figures[f"{name}_ms"] = round(took, 1)
        figures[f"{name}_cpu_ms"] = round(cpu, 1)
    return figures


if __name__ == "__main__":
    main()
