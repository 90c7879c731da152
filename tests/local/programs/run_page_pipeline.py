"""Pipelines for the test of the page of a run: every kind of artifact, a hostile page, and a task
that waits. Compiled into the directory of the first argument."""

import sys

from kfp import compiler, dsl
from kfp.dsl import HTML, ClassificationMetrics, Dataset, Metrics, Output


@dsl.component(install_kfp_package=False)
def prepare(rows: int, data: Output[Dataset]) -> int:
    with open(data.path, "w") as file:
        file.write("x,y\n" + "".join(f"{n},{n * n % 7}\n" for n in range(rows)))
    return rows


@dsl.component(install_kfp_package=False)
def train(rows: int, metrics: Output[Metrics], quality: Output[ClassificationMetrics]):
    for line in range(rows):
        print(f"\033[32mstep {line}\033[0m")  # noqa: T201
    metrics.log_metric("accuracy", 0.9)
    quality.log_confusion_matrix(["cat", "dog"], [[8, 2], [1, 9]])
    quality.log_roc_curve([0.0, 0.1, 1.0], [0.0, 0.7, 1.0], [1.0, 0.8, 0.0])


@dsl.component(install_kfp_package=False)
def report(rows: int, page: Output[HTML]):
    with open(page.path, "w") as file:
        file.write("""<!doctype html><h1>Report</h1><p id="found"></p><script>
        const found = [];
        for (const [what, attempt] of [
          ["page", () => parent.document.title], ["storage", () => localStorage.length],
          ["cookie", () => document.cookie], ["top", () => { top.location = "about:blank"; }]]) {
          try { attempt(); found.push(what + " reached"); }
          catch (error) { found.push(what + " refused"); }
        }
        fetch("/api/v1/project").then(() => found.push("fetched"), () => found.push("no network"))
          .finally(() => { document.getElementById("found").textContent = found.join("; "); });
        </script>""")


@dsl.component(install_kfp_package=False)
def wait(gate: str):
    import os
    import time

    print("it waits", flush=True)  # noqa: T201
    while not os.path.exists(gate):
        time.sleep(0.02)


@dsl.component(install_kfp_package=False)
def check(gate: str):
    import os

    if not os.path.exists(gate):
        raise ValueError("the gate is closed")


@dsl.pipeline(name="kinds")
def kinds(rows: int = 40):
    prepared = prepare(rows=rows)
    train(rows=prepared.outputs["Output"])
    report(rows=prepared.outputs["Output"])
    with dsl.ParallelFor([1, 2]) as item:
        prepare(rows=item).after(prepared)


@dsl.pipeline(name="gated")
def gated(gate: str):
    wait(gate=gate).set_caching_options(False)


@dsl.pipeline(name="closed")
def closed(gate: str):
    check(gate=gate)


for one in (kinds, gated, closed):
    compiler.Compiler().compile(one, f"{sys.argv[1]}/{one.name}.yaml")
