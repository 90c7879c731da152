"""How smoothly the pages of the web app move with much data, and how fast they open.

    python bench/web_pages.py [--only NAME…] [--rounds N]

For each case of `CASES`, a server with a project of its own answers Debian's Chromium on this
machine. A case fills the project, says which page shows the data and when it is complete, and what
a user then does: scroll or pan. Prints for each page

- the time from opening the address until the page is complete, with a warm cache;
- the compressed JavaScript of the page, everything that it loads;
- the times between frames while the user scrolls or pans: median, 95th percentile and the longest,
  and how many frames came late (more than 50 ms, which people notice).

A headless browser draws without a GPU and shares two cores with the server: a frame every 16.7 ms
is what it can do at best. `web_load.py` compares the first page with MLflow's.

To add a page, write a function that fills a project and add a `Case`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

CLEW = str(Path(sys.executable).with_name("clew"))
LATE = 50.0
JOINED = "e1:/w/joined"
STEPS = 60
"""Turns of the wheel, or moves of the pointer, for each measurement."""
_RECORD = """
() => {
  window.frameTimes = [];
  let last = performance.now();
  const tick = (now) => {
    window.frameTimes.push(now - last);
    last = now;
    if (window.frameTimes) requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}
"""
_STOP = "() => { const found = window.frameTimes; window.frameTimes = null; return found.slice(1) }"


@dataclass(frozen=True)
class Served:
    """A running server for one case."""

    address: str
    token: str
    folder: Path
    """The project's directory."""

    def client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=600)


@dataclass(frozen=True)
class Case:
    name: str
    fill: Callable[[Served], None]
    """Puts the data into the project."""
    path: str
    ready: str
    """A CSS selector of what is visible when the page is complete."""
    move: Callable[[Page], None]
    """What the user does while frames are measured."""
    before: Callable[[Path], None] | None = None
    """What must be in the project's directory before the server starts."""
    command: tuple[str, ...] = ("server",)
    """What serves the project: `clew server` or `clew up`."""
    options: tuple[str, ...] = ("--runs", "0")
    """Of that command."""


def measure_frames(page: Page, move: Callable[[Page], None]) -> list[float]:
    """The milliseconds between frames while the user does something."""
    page.evaluate(_RECORD)
    move(page)
    frames: list[float] = page.evaluate(_STOP)
    return frames


def scroll(selector: str, step: int = 400) -> Callable[[Page], None]:
    """Turn the wheel over an element."""

    def turn(page: Page) -> None:
        page.locator(selector).first.hover()
        for number in range(STEPS):
            page.mouse.wheel(0, step if number < STEPS * 2 // 3 else -step)

    return turn


def pan(selector: str, distance: int = 300) -> Callable[[Page], None]:
    """Drag an element to and fro, such as the background of a graph."""

    def drag(page: Page) -> None:
        box = page.locator(selector).first.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + 20
        page.mouse.move(x, y)
        page.mouse.down()
        for end in (x - distance, x + distance, x):
            page.mouse.move(end, y + 40, steps=STEPS // 3)
        page.mouse.up()

    return drag


def send_executions(served: Served, count: int, name: str = "train") -> None:
    """Send records of executions, each with parameters and a result."""
    began = time.time_ns() - count * 1_000_000_000
    with served.client() as client:
        for first in range(0, count, 1000):
            events = []
            for number in range(first, min(first + 1000, count)):
                uid, at = f"{number + 1:032x}", began + number * 1_000_000_000
                rate, epochs = f"--rate={number % 97 / 1000}", f"--epochs={number % 7 + 1}"
                shared = {"execution": uid, "activity": uid}
                facets = {"git": {"commit": f"{number % 50:040x}", "dirty": number % 3 == 0}}
                command = ["python3", f"{name}.py", rate, epochs]
                events += [
                    {"event": "started", "n": 1, "at": at, "kind": "execution", "agent": "ann"}
                    | {"command": command, "cwd": "/home/ann/work", "facets": facets}
                    | shared,
                    {"event": "ended", "n": 2, "at": at + number % 600 * 1_000_000_000}
                    | {"status": 0 if number % 20 else 1}
                    | shared,
                ]
            lines = "".join(f"{json.dumps(event)}\n" for event in events)
            headers = {"Content-Type": "application/x-ndjson"}
            client.post("/api/v1/events", content=lines, headers=headers).raise_for_status()


def make_notebooks(folder: Path) -> None:
    """1,000 notebooks that are stopped, in the back end of this machine."""
    from clew.api.local.project import open_local_project
    from clew.settings import load
    from clew.workloads.annotations import LAST_ACTIVITY, STOPPED
    from clew.workloads.local.local_backend import LocalBackend

    os.chdir(folder)
    with open_local_project(load()) as project:
        backend = LocalBackend(project.directory)
    for number in range(1000):
        name = f"study-{number}"
        notes = {STOPPED: "2026-01-05T10:00:00Z", LAST_ACTIVITY: "2026-01-05T09:00:00Z"}
        claim = {"persistentVolumeClaim": {"claimName": "project"}}
        mount = {"name": "project", "mountPath": "/home/jovyan"}
        container = {"name": name, "image": "this-machine", "volumeMounts": [mount]}
        pod = {"containers": [container], "volumes": [{"name": "project", **claim}]}
        backend.create(
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "Notebook",
                "metadata": {"name": name, "namespace": "local", "annotations": notes},
                "spec": {"template": {"spec": pod}},
            }
        )
    backend.close()


def run_tasks(folder: Path) -> None:
    """A pipeline run of 500 tasks, in 20 layers."""
    from kfp import compiler, dsl

    @dsl.component(install_kfp_package=False)
    def step(number: int) -> int:
        return number

    @dsl.pipeline(name="many-tasks")
    def many_tasks() -> None:
        layer: list[dsl.PipelineTask] = []
        for depth in range(20):
            above = layer
            layer = [step(number=25 * depth + place) for place in range(25)]
            for place, task in enumerate(layer if above else ()):
                task.after(above[place], above[(place + 1) % 25])

    compiler.Compiler().compile(many_tasks, str(folder / "tasks.yaml"))
    record(folder, "pipeline", "run", "tasks.yaml")


def print_lines(folder: Path) -> None:
    """An execution that prints a million lines."""
    line = "seq 1 1000000 | sed 's/^/epoch 3, batch /; s/$/, loss 0.25/'"
    record(folder, "exec", "--", "sh", "-c", line)


def record(folder: Path, *words: str) -> None:
    subprocess.run([CLEW, *words], cwd=folder, check=True, capture_output=True)


def send_lineage(served: Served) -> None:
    """A file that 20 chains of 50 processes lead to. No two programs are alike, so that nothing is
    drawn as a group."""
    uid, began = "a" * 32, time.time_ns()
    events: list[dict[str, object]] = []

    def add(event: str, **fields: object) -> None:
        at = began + len(events) * 1000
        events.append({"event": event, "execution": uid, "n": len(events) + 1, "at": at} | fields)

    def run(process: str, sources: list[list[object]], path: str) -> list[object]:
        made: list[object] = [f"file://bench/w/{path}", process, 1]
        add(
            "started", activity=process, kind="process", parent=uid, number=len(events),
            command=[process], exe="/bin/x", cwd="/w",
        )  # fmt: skip
        for source in sources:
            add("used", activity=process, version=source, how="open")
        add("generated", activity=process, version=made, how="write")
        return made

    add("started", activity=uid, kind="execution", command=["make"], cwd="/w", agent="ann")
    ends = []
    for chain in range(20):
        end: list[object] = [f"file://bench/w/{chain}/raw", uid, 1]
        for step in range(50):
            end = run(f"step-{chain}-{step}", [end], f"{chain}/{step}")
        ends.append(end)
    run("join", ends, "joined")
    add("ended", activity=uid, status=0)
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    with served.client() as client:
        headers = {"Content-Type": "application/x-ndjson"}
        client.post("/api/v1/events", content=lines, headers=headers).raise_for_status()
        asked = {"target": JOINED, "direction": "up", "depth": 100}
        drawn = client.post("/api/v1/lineage/graph", json=asked).raise_for_status().json()
    boxes = len(drawn["boxes"])
    if boxes < 2000 or drawn["truncated"]:
        raise SystemExit(f"the page draws {boxes} boxes, not 2,000")


CASES = (
    Case(
        name="a run of 500 tasks",
        before=run_tasks,
        fill=lambda served: None,
        path="/runs/r1",
        ready="[data-node]",
        move=pan(".graph"),
    ),
    Case(
        name="a log of a million lines",
        before=print_lines,
        fill=lambda served: None,
        path="/runs/e1?tab=output",
        ready="[data-log] li",
        move=scroll("[data-log]"),
    ),
    Case(
        name="10,000 runs",
        fill=lambda served: send_executions(served, 10_000),
        path="/runs",
        ready="[role=row][aria-rowindex='2']",
        move=scroll("[role=table]"),
    ),
    Case(
        name="1,000 notebooks",
        command=("up", "--no-browser"),
        options=(),
        before=make_notebooks,
        fill=lambda served: None,
        path="/notebooks",
        ready="[role=row][aria-rowindex='2']",
        move=scroll("[role=table]"),
    ),
    Case(
        name="a lineage of 2,000 boxes",
        fill=send_lineage,
        path=f"/lineage?target={JOINED}&direction=up&depth=100",
        ready=".react-flow__node",
        move=pan(".react-flow__pane"),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=[case.name for case in CASES])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; {options.rounds} rounds")
    print(
        "| page | complete after | JavaScript | frames: median | 95 % | longest | late |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        for case in CASES:
            if case.name in options.only:
                with tempfile.TemporaryDirectory() as folder, serve(case, Path(folder)) as served:
                    case.fill(served)
                    print(measure(browser, served, case, options.rounds), flush=True)
        browser.close()


def measure(browser: Browser, served: Served, case: Case, rounds: int) -> str:
    """One row of the table."""
    seconds, frames, size = [], [], 0
    with log_in(browser, served) as context:
        for number in range(rounds + 1):
            page = context.new_page()
            began = time.monotonic()
            page.goto(f"{served.address}{case.path}", wait_until="commit")
            page.wait_for_selector(case.ready, state="visible", timeout=120_000)
            took = time.monotonic() - began
            if number == 0:  # the first visit fills the cache, and the server's own tables
                size = loaded_javascript(page)
            else:
                seconds.append(took)
                frames += measure_frames(page, case.move)
            page.close()
    return (
        f"| {case.name} | {statistics.median(seconds):.2f} s | {size / 1000:.0f} KB"
        f" | {statistics.median(frames):.1f} ms"
        f" | {statistics.quantiles(frames, n=20)[-1]:.1f} ms | {max(frames):.0f} ms"
        f" | {sum(frame > LATE for frame in frames)} of {len(frames)} |"
    )


def loaded_javascript(page: Page) -> int:
    """The compressed bytes of all scripts that the page loaded so far."""
    page.wait_for_load_state("load")
    found = page.evaluate(
        "performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('.js'))"
        ".reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"
    )
    return int(found)


@contextmanager
def log_in(browser: Browser, served: Served) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.request.get(f"{served.address}/?token={served.token}")
    yield context
    context.close()


@contextmanager
def serve(case: Case, folder: Path) -> Iterator[Served]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CLEW_")}
    given = {"cwd": folder, "env": environment}
    subprocess.run([CLEW, "init"], check=True, capture_output=True, **given)
    if case.before is not None:
        case.before(folder)
    command = [CLEW, *case.command, "--port", "0", "--json", *case.options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **given
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            yield Served(said["address"], said["token"], folder)
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
