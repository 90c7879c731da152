"""How a server starts a `rerun_worker`: the same for commands of a client and for repeats."""

import os
import sys
from typing import TypedDict

from clew.server.server_state import Service
from clew.settings import remove_own_variables


class WorkerOptions(TypedDict):
    """The arguments with which `subprocess` and `asyncio` start it."""

    cwd: str
    env: dict[str, str]
    start_new_session: bool
    pass_fds: tuple[int]


def worker_command(messages: int) -> list[str]:
    """The command line. `messages`: the file descriptor to which it writes its messages. `-P`: it
    imports nothing from its working directory, which is the project."""
    return [sys.executable, "-P", "-m", "clew.server.repeats.rerun_worker", str(messages)]


def worker_options(service: Service, messages: int) -> WorkerOptions:
    """It gets the project and the address of the graph, and no credentials of the server."""
    environ = remove_own_variables()
    environ["CLEW_PROJECT"] = str(service.directory.root)
    if service.settings.graph:
        environ["CLEW_GRAPH"] = service.settings.graph
    return {
        "cwd": os.fspath(service.directory.root),
        "env": environ,
        "start_new_session": True,
        "pass_fds": (messages,),
    }
