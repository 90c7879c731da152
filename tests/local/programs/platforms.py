"""Pipelines that ask their platform for something: `python platforms.py FOLDER` compiles them."""

import sys
from pathlib import Path

from kfp import compiler, dsl


@dsl.component
def take_part(folder: str, name: str) -> None:
    """Say when it began and ended, and let others begin meanwhile."""
    import time

    with open(f"{folder}/{name}", "w") as file:
        file.write(f"{time.monotonic()} ")
        time.sleep(0.3)
        file.write(f"{time.monotonic()}")


@dsl.component
def words() -> str:
    return "500m"


@dsl.pipeline(name="crowding")
def crowding(folder: str, memory: str) -> None:
    asked = words()
    for name in ("a", "b"):
        half = take_part(folder=folder, name=name)
        half.set_memory_request(memory)
        half.set_cpu_request(asked.output)
    for name in ("c", "d"):
        take_part(folder=folder, name=name).set_cpu_limit("100m")
    take_part(folder=folder, name="cores").set_cpu_request("5000")
    learn = take_part(folder=folder, name="chips")
    learn.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(64)


@dsl.pipeline(name="asking")
def asking(folder: str, cpu: str) -> None:
    take_part(folder=folder, name="a").set_cpu_limit(cpu)


ALL = (crowding, asking)

if __name__ == "__main__":
    for one in ALL:
        compiler.Compiler().compile(one, str(Path(sys.argv[1]) / f"{one.name}.yaml"))
