"""Runs the function of a component with the executor of the kfp SDK.

    python launcher.py DIR FUNCTION    one task, whose files are in DIR
    python launcher.py                 a worker: it receives tasks from the socket on its stdin, and
                                       forks a process for each

The interpreter of the components runs this file and need not have Clew, so it imports only the SDK
and the standard library. The input of a task is a file, since the kernel limits the length of an
argument. A worker imports the SDK and none of the user's code.
"""

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType, SimpleNamespace

del sys.path[0]  # this file's directory: a task must not import from it
sys.dont_write_bytecode = True  # a task must leave nothing that a later one could read
gc.disable()  # nothing that is loaded here is ever freed

from kfp.dsl import executor, executor_main  # type: ignore[import-untyped]  # noqa: E402

gc.enable()


class ComponentArguments:
    """The arguments of a component: what the SDK would read from the command line with `argparse`,
    which takes a tenth of the time of a small task. The SDK gets this in place of that module."""

    def __init__(self, values: Mapping[str, str], permitted: Callable[[], None]) -> None:
        """`permitted` returns when the component may be loaded, which is the next step."""
        self._values: dict[str, object] = dict(values)
        self._permitted = permitted

    def ArgumentParser(self, **_: object) -> "ComponentArguments":  # noqa: N802
        return self

    def add_argument(self, name: str, *, default: object = None, **_: object) -> None:
        self._values.setdefault(name.lstrip("-"), default)

    def parse_known_args(self) -> tuple[SimpleNamespace, list[str]]:
        self._permitted()
        return SimpleNamespace(**self._values), []


class ProbingFinder:
    """Finds modules in a directory by probing their file names. Python's own finder lists the
    directory, so that a task would depend on every name in its working directory."""

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


class WorkingDirectoryFinder:
    """Searches the working directory first. On sys.path it is last, since programs that look for
    installed packages list one directory of it after the other."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return ProbingFinder(self.directory).find_spec(name) if path is None else None

    def finder_for(self, directory: str) -> ProbingFinder:
        if not f"{directory}/".startswith(f"{self.directory}/"):
            raise ImportError
        return ProbingFinder(directory)


def search_working_directory_first() -> None:
    finder = WorkingDirectoryFinder(os.getcwd())
    sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder), finder)
    sys.path_hooks.insert(0, finder.finder_for)
    sys.path.append(finder.directory)


def run_component(
    directory: str, function: str, permitted: Callable[[], None] = lambda: None
) -> None:
    with open(os.path.join(directory, "executor_input.json"), encoding="utf-8") as file:
        executor_input = file.read()
    given = {
        "component_module_path": os.path.join(directory, "component.py"),
        "function_to_execute": function,
        "executor_input": executor_input,
    }
    sys.argv[1:] = [word for name, value in given.items() for word in (f"--{name}", value)]
    if not hasattr(executor_main, "argparse"):  # another version of the SDK
        permitted()
    executor_main.argparse = ComponentArguments(given, permitted)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a live log shows each line at once
        sys.stdout.reconfigure(line_buffering=True)
    executor_main.executor_main()
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run loop stops tasks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children need not be waited for
    for _ in range(REHEARSALS):
        rehearse()
    gc.collect()
    gc.freeze()
    requests.send(b"ready")
    while not is_closed(requests):
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


REHEARSALS = 9
"""Python rewrites the code of a function at about its eighth call, so that it runs faster.
After this, the children share the rewritten code."""


def rehearse() -> None:
    """Do what the SDK does for every task, without a file: log a line, load a function, inspect its
    signature, and read and write JSON.

    The worker does it to load the modules. A child does it again before it has a task: the
    kernel copies each page that a child writes to, which takes longer than the work itself."""
    logger, handler = logging.Logger("rehearsal"), logging.StreamHandler(io.StringIO())
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.info("x")
    handler.close()
    spec = importlib.util.spec_from_file_location("rehearsal", "/rehearsal.py")
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    module = importlib.util.module_from_spec(spec)
    exec(spec.loader.source_to_code(REHEARSED.encode(), "/rehearsal.py"), module.__dict__)  # noqa: S102
    inspect.getfullargspec(module.step)
    task = json.loads('{"inputs": {"parameterValues": {"x": 1}}, "outputs": {"outputFile": "/"}}')
    json.dumps(task, indent=4)
    with suppress(Exception):  # another version of the SDK
        executor.Executor(executor_input=task, function_to_execute=module.step)


def is_closed(requests: socket.socket) -> bool:
    try:
        return not requests.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def fork_ahead(requests: socket.socket) -> tuple[int, int]:
    """Fork a child that waits for the next task, so that the task need not wait for the fork.
    Returns its pid, and a descriptor that becomes readable when it has taken a task."""
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
    """In the child. It starts no task if the worker is gone, since nothing would report the pid."""
    os.setpgid(0, 0)
    search_working_directory_first()
    rehearse()
    message, given = receive(requests)
    try:
        os.write(take, b"." * bool(message))
    except BrokenPipeError:
        message = b""
    if not message:
        os._exit(0)
    os.close(take)
    output, permission = given
    detach(requests, output)
    directory, function = message.decode().split("\0")
    run_task(directory, function, permission)


def refuse(requests: socket.socket, why: str) -> None:
    message, given = receive(requests)
    if message:
        requests.send(why.encode())
        for descriptor in given:
            os.close(descriptor)


def receive(requests: socket.socket) -> tuple[bytes, Sequence[int]]:
    """A message, and the descriptors sent with it: the output of the task, and a pipe from which
    it reads the permission to run."""
    message, extra, _, _ = requests.recvmsg(65536, socket.CMSG_LEN(8))
    if not extra:
        return b"", ()
    return message, array.array("i", extra[0][2])


def detach(requests: socket.socket, output: int) -> None:
    """Replace the signals and descriptors that the child has from its worker."""
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


def await_permission(pipe: int) -> None:
    """The run loop checks meanwhile whether the files that the worker loaded are unchanged. If they
    are not, it lets another worker do the task."""
    if not os.read(pipe, 1):
        os._exit(0)
    os.close(pipe)


def run_task(directory: str, function: str, permission: int) -> None:
    """Run one task and exit, as if the process had been started for it."""
    status = 1
    try:
        run_component(directory, function, lambda: await_permission(permission))
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
    search_working_directory_first()
    run_component(sys.argv[1], sys.argv[2])
else:
    serve()
