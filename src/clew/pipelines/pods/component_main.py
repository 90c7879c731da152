"""Runs the function of a Python component in the image of its task.

    python3 component_main.py DIR    DIR has component.py, executor_input.json and call.json

The image need not have Clew, nor the kfp SDK: its runtime lies beside DIR, and is searched last.
So this file imports only the standard library, and runs with any Python that the SDK supports.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys


def main(directory: str) -> None:
    os.dup2(1, 2)  # one pipe: the lines of two would arrive in any order
    with open(os.path.join(directory, "call.json"), encoding="utf-8") as file:
        call = json.load(file)
    for arguments in call["installs"]:
        install(arguments)
    sys.path[0] = os.getcwd()
    sys.path.append(os.path.join(os.path.dirname(directory), "sdk", "site-packages"))
    with open(os.path.join(directory, "executor_input.json"), encoding="utf-8") as file:
        executor_input = file.read()
    sys.argv[1:] = ["--component_module_path", os.path.join(directory, "component.py")]
    sys.argv += ["--function_to_execute", call["function"], "--executor_input", executor_input]
    if isinstance(sys.stdout, io.TextIOWrapper):  # a live log shows each line at once
        sys.stdout.reconfigure(line_buffering=True)
    from kfp.dsl.executor_main import executor_main  # type: ignore[import-untyped]

    executor_main()
    collect_custom_paths(json.loads(executor_input)["outputs"]["outputFile"])


def install(arguments: list[str]) -> None:
    """As the SDK does, also in an image whose Python belongs to its distribution."""
    pip = [sys.executable, "-m", "pip"]
    if subprocess.call([*pip, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        subprocess.check_call([sys.executable, "-m", "ensurepip", "--user"])
    os.environ.setdefault("PIP_BREAK_SYSTEM_PACKAGES", "1")
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    subprocess.check_call([*pip, "install", *arguments])


def collect_custom_paths(output_file: str) -> None:
    """Copy artifacts that the component wrote elsewhere (`artifact.custom_path`) to their place in
    the Pod's share of the store. A file that does not exist is no error, as in Kubeflow."""
    if not os.path.exists(output_file):
        return
    with open(output_file, encoding="utf-8") as file:
        output = json.load(file)
    changed = False
    for listed in output.get("artifacts", {}).values():
        for artifact in listed.get("artifacts", ()):
            path, uri = artifact.get("custom_path"), artifact.get("uri", "")
            if not path or not os.path.exists(path) or not uri.startswith("s3://"):
                continue
            target = "/s3/" + uri[len("s3://") :]
            if os.path.isdir(path):
                shutil.copytree(path, target, dirs_exist_ok=True)
            elif path != target:
                shutil.copy2(path, target)
            del artifact["custom_path"]
            changed = True
    if changed:
        with open(output_file, "w", encoding="utf-8") as file:
            json.dump(output, file)


if __name__ == "__main__":
    main(sys.argv[1])
