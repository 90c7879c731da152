"""A pipeline with what a page of a run shows: numbers, an artifact, and a task that may fail."""

# What the SDK compiles is written as its own pages write it.
# ruff: noqa: T201

import sys

from kfp import compiler, dsl


@dsl.component(install_kfp_package=False)
def train(rate: float, model: dsl.Output[dsl.Model], scores: dsl.Output[dsl.Metrics]) -> float:
    print("training with", rate)
    with open(model.path, "w") as file:
        file.write(f"w,b\n{rate},1\n")
    scores.log_metric("accuracy", 0.5 + rate)
    return rate * 2


@dsl.component(install_kfp_package=False)
def judge(loss: float, gate: str) -> str:
    import os
    import time

    print("waiting for", gate, flush=True)
    while gate and not os.path.exists(gate):
        time.sleep(0.01)
    print("ärgerlich" if loss > 1 else "fine")
    return "ok"


@dsl.pipeline(name="measuring")
def measuring(rate: float = 0.25, gate: str = "") -> None:
    made = train(rate=rate)
    judge(loss=made.outputs["Output"], gate=gate).set_caching_options(False)


if __name__ == "__main__":
    compiler.Compiler().compile(measuring, sys.argv[1])
