"""Take pictures of every page of the web app, light and dark: docs/images/app-*.png.

    .venv/bin/python -m tools.web_pictures [NAME...]

`make pictures` calls it. It makes a project as a data scientist would have it: a search for good
settings of a training program, the taxi pipeline with runs that succeeded and one that failed, a
schedule, notebooks, a TensorBoard and volumes. Everything in the pictures was run for real.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Page, expect, sync_playwright
from tools.png_palette import reduce_colors

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WINDOW = {"width": 1280, "height": 800}
MAX_BYTES = 150_000
_ENDED_SECONDS = 300
_MILLISECONDS = 60_000
_QUIET_MILLISECONDS = 600
"""Animations and pending layouts have ended by then."""

SEARCH = """\
import argparse, json
import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import log_loss

options = argparse.ArgumentParser()
options.add_argument("--learning-rate", type=float)
options.add_argument("--depth", type=int)
options.add_argument("--trees", type=int, default=60)
given = options.parse_args()
table = np.loadtxt("data/clean.csv", delimiter=",", skiprows=1)
half = len(table) // 2
model = GradientBoostingClassifier(
    learning_rate=given.learning_rate, max_depth=given.depth, n_estimators=given.trees
)
if given.depth > 8:
    raise ValueError(f"depth {given.depth} would overfit: choose at most 8")
model.fit(table[:half, :-1], table[:half, -1])
loss = log_loss(table[half:, -1], model.predict_proba(table[half:, :-1]), labels=[0, 1])
accuracy = float((model.predict(table[half:, :-1]) == table[half:, -1]).mean())
scores = {"accuracy": round(accuracy, 4), "loss": round(float(loss), 4)}
json.dump(scores, open("metrics.json", "w"))
print(f"accuracy {accuracy:.4f}")
"""
SETTINGS = [(0.3, 2), (0.1, 2), (0.1, 3), (0.03, 3), (0.1, 9), (0.05, 4)]


@dataclass(frozen=True)
class Served:
    address: str
    token: str
    folder: Path

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx2.request(
            method, f"{self.address}{path}", json=body, headers=headers, timeout=120, **more
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None


def main() -> None:
    names = sys.argv[1:]

    def chosen(paths: dict[str, str]) -> dict[str, str]:
        return {name: path for name, path in paths.items() if not names or name in names}

    with tempfile.TemporaryDirectory(prefix="clew-pictures-") as home:
        folder = Path(home) / "pump-failures"
        folder.mkdir()
        env = environment(Path(home))
        subprocess.run(["clew", "init"], cwd=folder, env=env, check=True, capture_output=True)
        with serve(folder, env) as served:
            take(served, chosen({"first-use": "/"}))
            take(served, chosen({"log-in": "/"}), logged_in=False)
        record(folder, env)
        with serve(folder, env) as served:
            take(served, chosen(fill(served)))


def environment(home: Path) -> dict[str, str]:
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("CLEW_", "XDG_", "VIRTUAL"))}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{kept['PATH']}", "HOME": str(home)}


def record(folder: Path, env: dict[str, str]) -> None:
    """The work at the command line, before the app is opened."""

    def run(*words: str, check: bool = True) -> None:
        subprocess.run(words, cwd=folder, env=env, check=check, capture_output=True)

    shutil.copytree(ROOT / "examples/training", folder, dirs_exist_ok=True)
    shutil.copy(ROOT / "examples/taxi/pipeline.py", folder / "taxi.py")
    (folder / "search.py").write_text(SEARCH)
    with (folder / "trips.csv").open("w") as trips:
        words = [sys.executable, ROOT / "examples/taxi/make_trips.py", "3000"]
        subprocess.run(words, check=True, stdout=trips)
    for command in ("git init -q -b main", "git add .", "git commit -q -m Start"):
        identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        program, *words = command.split()
        run(program, *identity, *words)
    run("clew", "exec", "--name", "pump-model", "--", "./run.sh")
    for rate, depth in SETTINGS:
        words = (f"--learning-rate={rate}", f"--depth={depth}")
        run("clew", "exec", "--", "python3", "search.py", *words, check=False)
    run("clew", "tag", "e4", "best")
    run("clew", "note", "e4", "shallow trees generalize better here")
    run("clew", "repeat", "e4", check=False)
    run("clew", "remote", "add", "lab", str(folder.parent / "lab"))


@contextmanager
def serve(folder: Path, env: dict[str, str]) -> Iterator[Served]:
    command = ["clew", "up", "--port", "0", "--no-browser", "--json"]
    with (
        (folder.parent / "server.log").open("w") as log,
        subprocess.Popen(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            yield Served(said["address"].partition("/?")[0], said["token"], folder)
        finally:
            process.terminate()


def fill(served: Served) -> dict[str, str]:
    """The work in the app; returns the pages to show: paths by name."""
    kfp = "/apis/v2beta1"
    spec = served.folder / "taxi.yaml"
    compiling = (
        "from kfp import compiler; import taxi;"
        " compiler.Compiler().compile(taxi.taxi_tips, 'taxi.yaml')"
    )
    subprocess.run([sys.executable, "-c", compiling], cwd=served.folder, check=True)
    pipeline = served.ask(
        *("POST", f"{kfp}/pipelines/upload"),
        params={"name": "taxi-tips-made-up", "display_name": "Taxi tips"},
        files={"uploadfile": ("taxi.yaml", spec.read_bytes())},
    )["pipeline_id"]
    experiment = served.ask("POST", f"{kfp}/experiments", {"display_name": "Tips by 2016"})
    reference = {
        "pipeline_version_reference": {"pipeline_id": pipeline},
        "experiment_id": experiment["experiment_id"],
    }
    runs = []
    for name, parameters in (
        ("usual rate", {}),
        ("slower", {"learning_rate": 0.1}),
        ("file that is missing", {"trips": "trips-2017.csv"}),
    ):
        given = {"display_name": name, "runtime_config": {"parameters": parameters}, **reference}
        runs.append(served.ask("POST", f"{kfp}/runs", given)["run_id"])
        wait(f"the run {name}", lambda: is_ended(served, runs[-1]))
    served.ask(
        *("POST", f"{kfp}/recurringruns"),
        {
            "display_name": "every Monday",
            "mode": "ENABLE",
            "max_concurrency": "1",
            "trigger": {"cron_schedule": {"cron": "0 0 6 * * MON"}},
            **reference,
        },
    )
    local = "api/namespaces/local"
    for name in ("exploration", "figures"):
        served.ask("POST", f"/jupyter/{local}/notebooks", {"name": name})
    board = {"name": "search", "logspath": "pvc://project/logs"}
    served.ask("POST", f"/tensorboards/{local}/tensorboards", board)
    for kind in ("notebooks", "tensorboards"):
        wait(f"the {kind}", lambda kind=kind: all_started(served, kind))
    volume = {"name": "scratch", "mode": "ReadWriteOnce", "size": "10Gi", "class": ""}
    served.ask("POST", f"/volumes/{local}/pvcs", volume)
    served.ask("POST", "/api/v1/tokens", {"name": "nightly CI", "days": 90})
    first = served.ask("GET", f"/api/v1/runs/{runs[0]}")["id"]
    failed = served.ask("GET", f"/api/v1/runs/{runs[2]}")["id"]
    return {
        "home": "/",
        "runs": "/runs",
        "compare": '/compare?id=["e2","e3","e4","e5"]',
        "execution": "/runs/e4",
        "verdict": "/runs/e4?tab=repeats",
        "run": f"/runs/{first}",
        "run-failed": f"/runs/{failed}",
        "pipelines": "/pipelines",
        "pipeline": f"/pipelines/{pipeline}",
        "start-run": f"/pipelines/start?pipeline={pipeline}",
        "schedules": "/schedules",
        "experiments": "/experiments",
        "lineage": f"/lineage?target=e1:{served.folder}/metrics.json",
        "notebooks": "/notebooks",
        "new-notebook": "/notebooks/new",
        "notebook": "/notebooks/local/exploration",
        "edit-notebook": "/notebooks/local/exploration/edit",
        "tensorboards": "/tensorboards",
        "new-tensorboard": "/tensorboards/new",
        "tensorboard": "/tensorboards/local/search",
        "volumes": "/volumes",
        "new-volume": "/volumes/new",
        "volume": "/volumes/local/scratch",
        "tokens": "/settings/tokens",
        "remotes": "/settings/remotes",
        "culling": "/settings/culling",
        "appearance": "/settings/appearance",
        "administration": "/settings/administration",
        "about": "/settings/about",
    }


def is_ended(served: Served, run: str) -> bool:
    return served.ask("GET", f"/api/v1/runs/{run}")["state"] not in ("pending", "running")


def all_started(served: Served, kind: str) -> bool:
    """Whether none of them is starting any more; one whose program is missing says so."""
    app = "jupyter" if kind == "notebooks" else kind
    found = served.ask("GET", f"/{app}/api/namespaces/local/{kind}")[kind]
    return all(one["status"]["phase"] != "waiting" for one in found)


def wait(what: str, condition: Any) -> None:
    until = time.monotonic() + _ENDED_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"still waiting for {what}")
        time.sleep(0.2)


def take(served: Served, paths: dict[str, str], *, logged_in: bool = True) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        context = browser.new_context(viewport=WINDOW, reduced_motion="reduce")
        page = context.new_page()
        if logged_in:
            page.goto(f"{served.address}/?token={served.token}")
        for name, path in paths.items():
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                show(page, f"{served.address}{path}")
                file = IMAGES / f"app-{name}-{theme}.png"
                picture = reduce_colors(page.screenshot())
                if len(picture) > MAX_BYTES:
                    raise SystemExit(f"{file} would have {len(picture)} bytes")
                file.write_bytes(picture)
                print(f"{file} {len(picture) / 1000:.0f} kB")
        browser.close()


def show(page: Page, url: str) -> None:
    """Open the page, and wait until nothing on it is loading."""
    page.goto(url)
    page.get_by_role("heading", level=1).wait_for()
    expect(page.get_by_role("status", name="Loading")).to_have_count(0, timeout=_MILLISECONDS)
    page.wait_for_timeout(_QUIET_MILLISECONDS)


if __name__ == "__main__":
    main()
