"""Runs the function of a component with the executor of the kfp SDK.

    python launcher.py DIR FUNCTION    one task, whose files lie in DIR
    python launcher.py                    a worker: its input is a socket, where it is told of one
                                          task after the other and forks a process for each

This file is run by the Python of the components, which need not have Clew: it imports nothing
but the SDK and what Python brings. A task's input is read from a file, for the kernel limits how
long an argument may be. A worker imports the SDK and none of the user's code.
"""

import argparse
import array
import atexit
import gc
import importlib.machinery
import importlib.util
import inspect
import io
import json
import logging
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

del sys.path[0]  # this file's own directory: what lies beside it is none of the task's business
sys.dont_write_bytecode = True  # a task must leave nothing that the next one would see
gc.disable()  # what is loaded here stays

from kfp.dsl.executor_main import executor_main  # type: ignore[import-untyped]  # noqa: E402

gc.enable()


class Asking:
    """Finds modules in a directory by asking for each by its names. Python's own way is to list the
    directory: then a task would depend on every name in its working directory."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def find_spec(
        self, name: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        base = os.path.join(self.directory, name.rpartition(".")[2])
        package = os.path.isdir(base)
        for found in ([f"{base}/__init__"] if package else []) + [base]:
            for suffix in importlib.machinery.all_suffixes():
                if os.path.isfile(found + suffix):
                    inside = [base] if found != base else None
                    return importlib.util.spec_from_file_location(
                        name, found + suffix, submodule_search_locations=inside
                    )
        if not package:
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [base]
        return spec


class Here:
    """The working directory as the first place to look in. On sys.path it is the last one: whoever
    looks there for what is installed lists one directory after the other until it is found."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return Asking(self.directory).find_spec(name) if path is None else None

    def below(self, directory: str) -> Asking:
        if not f"{directory}/".startswith(f"{self.directory}/"):
            raise ImportError
        return Asking(directory)


def look_here_first() -> None:
    here = Here(os.getcwd())
    sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), here)
    sys.path_hooks.insert(0, here.below)
    sys.path.append(here.directory)


def perform(directory: str, function: str) -> None:
    with open(os.path.join(directory, "executor_input.json"), encoding="utf-8") as file:
        given = file.read()
    sys.argv[1:] = ["--component_module_path", os.path.join(directory, "component.py")]
    sys.argv += ["--function_to_execute", function, "--executor_input", given]
    if isinstance(sys.stdout, io.TextIOWrapper):  # whoever follows it need not wait for a block
        sys.stdout.reconfigure(line_buffering=True)
    executor_main()
    collect_custom_paths(os.path.join(directory, "executor_output.json"))


def collect_custom_paths(output_file: str) -> None:
    """Copy artifacts that the component wrote elsewhere (`artifact.custom_path`) to their URI.

    Later tasks read the URI: the SDK does not hand a `custom_path` on. The task itself copies, so
    that the copy is part of its record. A file that does not exist is no error, as in Kubeflow.
    """
    if not os.path.exists(output_file):
        return
    with open(output_file, encoding="utf-8") as file:
        output = json.load(file)
    changed = False
    for listed in output.get("artifacts", {}).values():
        for artifact in listed.get("artifacts", ()):
            path, target = artifact.get("custom_path"), artifact.get("uri", "")
            if not path or not os.path.exists(path) or not target.startswith("/"):
                continue
            if os.path.isdir(path):
                shutil.copytree(path, target, dirs_exist_ok=True)
            elif path != target:
                shutil.copy2(path, target)
            del artifact["custom_path"]
            changed = True
    if changed:
        with open(output_file, "w", encoding="utf-8") as file:
            json.dump(output, file)


def serve() -> None:
    requests = socket.socket(fileno=0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when a task is stopped
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for them
    rehearse()
    gc.collect()
    gc.freeze()
    requests.send(b"ready")
    while not is_over(requests):
        try:
            child, taken = fork_ahead(requests)
        except OSError as error:
            refuse(requests, str(error))
            continue
        if os.read(taken, 1):
            requests.send(b"%d" % child)
        os.close(taken)


REHEARSED = """
import kfp
from kfp import dsl
from kfp.dsl import *
from typing import *

def step(x: int) -> int:
    return x + 1
"""


def rehearse() -> None:
    """Do what the SDK does for every task: read words, compile a function, ask for its signature,
    read and write JSON, and write a log.

    The worker does it once, so that no task has to load what is needed for it. A child does it
    again before it has a task: the kernel copies each page of memory that a child writes to, and
    that takes longer than the work itself."""
    words = argparse.ArgumentParser(description="rehearsal")
    for name in ("--one", "--two", "--three"):
        words.add_argument(name, type=str, required=True, help="of no meaning")
    words.parse_known_args(["--one", "1", "--two", "2", "--three", "3"])
    log = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    log.format(logging.LogRecord("rehearsal", logging.INFO, "", 0, "x", None, None))
    names: dict[str, Any] = {}
    exec(compile(REHEARSED, "rehearsal", "exec"), names)  # noqa: S102
    inspect.getfullargspec(names["step"])
    json.dumps(json.loads('{"inputs": {"parameterValues": {"x": 1}}}'), indent=4)


def is_over(requests: socket.socket) -> bool:
    """Whether nobody will ask any more."""
    try:
        return not requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def fork_ahead(requests: socket.socket) -> tuple[int, int]:
    """A child that waits for the next task, and a descriptor where it says that it has taken it.
    It is there before it is asked for: so nobody waits for it."""
    taken, take = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(taken)
        raise
    else:
        if not child:
            os.close(taken)
            await_work(requests, take)
        return child, taken
    finally:
        os.close(take)


def await_work(requests: socket.socket, take: int) -> None:
    """In the child. No task is begun that the worker, gone perhaps, cannot tell of."""
    os.setpgid(0, 0)
    look_here_first()
    rehearse()
    message, output = receive(requests)
    try:
        os.write(take, b"." * bool(message))
    except BrokenPipeError:
        message = b""
    if not message:
        os._exit(0)
    os.close(take)
    become(requests, output)
    work(*message.decode().split("\0"))


def refuse(requests: socket.socket, why: str) -> None:
    message, output = receive(requests)
    if message:
        requests.send(why.encode())
        os.close(output)


def receive(requests: socket.socket) -> tuple[bytes, int]:
    """A message, and the descriptor that came with it."""
    message, extra, _, _ = requests.recvmsg(65536, socket.CMSG_LEN(4))
    if not extra:
        return b"", -1
    return message, array.array("i", extra[0][2])[0]


def become(requests: socket.socket, output: int) -> None:
    """The child of a worker, with nothing of the worker's."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests.close()
    nothing = os.open(os.devnull, os.O_RDONLY)
    if nothing:
        os.dup2(nothing, 0)
        os.close(nothing)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)


def work(directory: str, function: str) -> None:
    """One task, to the end of this process: as if it had been started for it alone."""
    status = 1
    try:
        perform(directory, function)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)


if len(sys.argv) > 1:
    look_here_first()
    perform(*sys.argv[1:])
else:
    serve()
