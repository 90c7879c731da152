"""How fast the web app's table of runs opens in a browser, beside MLflow's.

    python bench/web_load.py [--runs N] [--rounds N]

Both servers hold the same number of runs, each with two parameters and a metric, and answer
Debian's Chromium on this machine. For each round and app, with an empty cache and in turns:

- the time from opening the address until the first row of the table is visible: the page is
  interactive then;
- the bytes of JavaScript that came over the network until then.

Prints the medians, Clew's target (1 s and 300 KB of JavaScript), and the ratios. Build the app
first (`make web`).
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import peers
from playwright.sync_api import Browser, sync_playwright

CLEW = str(Path(sys.executable).with_name("clew"))
SECONDS, JAVASCRIPT = 1.0, 300_000
ROW = {"clew": "[role=row][aria-rowindex='2']", "MLflow": "[role=row] a[href*='/runs/']"}
RECORD = """
import json, sys
json.dump({"accuracy": int(sys.argv[2]) / 1000}, open("metrics.json", "w"))
"""
LOG = """
import mlflow, sys
client = mlflow.MlflowClient(sys.argv[1])
experiment = client.create_experiment("table")
for n in range(int(sys.argv[2])):
    run = client.create_run(experiment)
    client.log_param(run.info.run_id, "n", n)
    client.log_param(run.info.run_id, "rate", n / 10)
    client.log_metric(run.info.run_id, "accuracy", n / 1000)
    client.set_terminated(run.info.run_id)
print(experiment)
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}; {options.runs} runs, {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium")
        with (
            serve_clew(path / "clew", options.runs) as clew,
            serve_mlflow(path / "mlflow", options.runs) as mlflow,
        ):
            addresses = {"clew": clew, "MLflow": mlflow}
            rounds = [
                {name: open_table(browser, name, url) for name, url in addresses.items()}
                for _ in range(options.rounds)
            ]
        browser.close()
    report(rounds)


def report(rounds: list[dict[str, tuple[float, int]]]) -> None:
    middle = {
        name: [statistics.median(each[name][i] for each in rounds) for i in (0, 1)]
        for name in rounds[0]
    }
    (seconds, bytes_), (their_seconds, their_bytes) = middle["clew"], middle["MLflow"]
    print("| | Clew | MLflow | ratio | target | |\n| --- | --- | --- | --- | --- | --- |")
    for label, own, their, target, unit in (
        ("first row visible", seconds, their_seconds, SECONDS, "s"),
        ("compressed JavaScript", bytes_ / 1000, their_bytes / 1000, JAVASCRIPT / 1000, "KB"),
    ):
        verdict = "ok" if own <= target else "MISSED"
        print(
            f"| {label} | {own:.2f} {unit} | {their:.2f} {unit} | {own / their:.2f} |"
            f" {target:g} {unit} | {verdict} |"
        )


def open_table(browser: Browser, name: str, url: str) -> tuple[float, int]:
    """Seconds until the first row is visible, and bytes of JavaScript, with an empty cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        page = context.new_page()
        if name == "clew":  # log in first, as a user has done
            context.request.get(url)
            url = url.partition("/?")[0] + "/runs"
        received: list[int] = []
        scripts: set[str] = set()
        session = context.new_cdp_session(page)
        session.send("Network.enable")

        def note_response(event: dict[str, object]) -> None:
            if event["type"] == "Script":
                scripts.add(str(event["requestId"]))

        def note_end(event: dict[str, object]) -> None:
            if event["requestId"] in scripts:
                received.append(int(str(event["encodedDataLength"]).partition(".")[0]))

        session.on("Network.responseReceived", note_response)
        session.on("Network.loadingFinished", note_end)
        began = time.monotonic()
        page.goto(url, wait_until="commit")
        page.wait_for_selector(ROW[name], state="visible", timeout=120_000)
        return time.monotonic() - began, sum(received)
    finally:
        context.close()


@contextmanager
def serve_clew(folder: Path, runs: int) -> Iterator[str]:
    folder.mkdir()
    (folder / "record.py").write_text(RECORD)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CLEW_")}
    subprocess.run([CLEW, "init"], cwd=folder, env=environment, check=True, capture_output=True)
    for n in range(runs):
        rate = f"--rate={n / 10}"
        subprocess.run(
            [CLEW, "exec", "--", sys.executable, "record.py", rate, str(n)],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
        )
    command = [CLEW, "server", "--port", "0", "--runs", "0", "--json"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        try:
            yield f"{said['address']}/?token={said['token']}"
        finally:
            process.terminate()


@contextmanager
def serve_mlflow(folder: Path, runs: int) -> Iterator[str]:
    folder.mkdir()
    program = peers.mlflow()
    database = f"sqlite:///{folder}/mlflow.db"
    made = subprocess.run(
        [program.with_name("python"), "-c", LOG, database, str(runs)],
        check=True,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        program,
        "ui",
        "--backend-store-uri",
        database,
        "--port",
        str(port),
        "--workers",
        "1",
    ]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_for_port(port)
            experiment = made.stdout.split()[-1]
            yield f"http://127.0.0.1:{port}/#/experiments/{experiment}/runs"
        finally:
            process.terminate()


def wait_for_port(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
