"""Runs a container's client, and says in the witness's sight what went into it and what came out.

    python contained.py FOLDER    a task, whose files lie in FOLDER

What a container does is done by processes that nobody here watches. So what it is given is read
before it starts, and what it made, in a folder that is nobody's, is copied to where it belongs
when it has ended. This file imports nothing but what Python brings.
"""

import json
import os
import shutil
import subprocess
import sys


def files(path: str) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    return [os.path.join(place, name) for place, _, names in os.walk(path) for name in names]


def read(path: str) -> None:
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def perform(folder: str) -> int:
    with open(os.path.join(folder, "container.json"), encoding="utf-8") as file:
        plan = json.load(file)
    for path in plan["inputs"]:
        for name in files(path):
            read(name)
    status = subprocess.run(plan["command"], check=False).returncode
    for made in os.scandir(plan["made"]):
        target = os.path.join(folder, made.name)
        if made.is_dir(follow_symlinks=False):
            shutil.copytree(made.path, target, symlinks=True)
        else:
            shutil.copy2(made.path, target, follow_symlinks=False)
    return status if status >= 0 else 128 - status


sys.exit(perform(sys.argv[1]))
