"""Run the client of a container runtime so that the tracer sees the container's inputs and outputs.

    python container_wrapper.py DIR    DIR holds the files of a task

The tracer does not see processes inside a container. So this program reads the inputs before the
container starts, and copies the outputs to their place after it has ended. It imports only the
standard library.
"""

import json
import os
import shutil
import subprocess
import sys


def list_files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return [
        os.path.join(directory, name) for directory, _, names in os.walk(path) for name in names
    ]


def read_file(path: str) -> None:
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def run_container(directory: str) -> int:
    with open(os.path.join(directory, "container.json"), encoding="utf-8") as file:
        plan = json.load(file)
    for path in plan["inputs"]:
        for name in list_files(path):
            read_file(name)
    status = subprocess.run(plan["command"], check=False).returncode
    for made in os.scandir(plan["outputs"]):
        target = os.path.join(directory, made.name)
        if made.is_dir(follow_symlinks=False):
            shutil.copytree(made.path, target, symlinks=True)
        else:
            shutil.copy2(made.path, target, follow_symlinks=False)
    return status if status >= 0 else 128 - status


sys.exit(run_container(sys.argv[1]))
