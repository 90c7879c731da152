"""`clew up`: open the web app of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_line, print_message

if TYPE_CHECKING:
    from clew.api.local.project import LocalProject

_PORTS = range(8100, 8120, 2)
"""Tried in this order; each with the next one, for notebooks."""
_WAIT_SECONDS = 15.0
"""For a server that is starting or ending."""


@click.command(
    "up",
    short_help=COMMANDS["up"],
    epilog="Example: clew up",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port to listen on; 0: any free port. Default: 8100, or the next one that is free. "
    "Notebooks use the port after it.",
)
@click.option(
    "--idle-minutes",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Stop notebooks, TensorBoards and volume viewers that were not used for so long; default: "
    "as chosen in Settings, at first never.",
)
@click.option("--no-browser", is_flag=True, help="Print the address only.")
@json_option
def command(port: int | None, idle_minutes: float | None, no_browser: bool, as_json: bool) -> None:
    """Open the web app of this project: runs, lineage, pipelines, notebooks, TensorBoards and
    volumes.

    Notebooks, TensorBoards and volume viewers are processes of this machine, and volumes are
    directories. They end with Ctrl-C, and start again with the next `clew up`. The printed address
    contains the token that every request needs. If the web app of this project is already open,
    its address is printed.
    """
    from clew.errors import Busy
    from clew.server.workload_source import from_this_machine

    project = _open_project()
    try:
        workloads = from_this_machine(project.directory, idle_minutes)
    except Busy:
        if _show_running(project, no_browser=no_browser, as_json=as_json):
            return
        workloads = from_this_machine(project.directory, idle_minutes)

    from clew.kube.workload_tokens import token_digest
    from clew.server.listener import serve
    from clew.workloads.local.server_lock import RunningServer

    def started(address: str, token: str, apps: str | None) -> None:
        assert workloads.local is not None
        workloads.local.lock.publish(RunningServer(address, token_digest(token)))
        _show(address, token, apps, running=False, as_json=as_json)
        print_message(f"clew: serving {project.root}; end with Ctrl-C")
        if not no_browser:
            _open_browser(f"{address}/?token={token}")

    serve(
        project.directory,
        project.settings,
        host="127.0.0.1",
        ports=_PORTS if port is None else (port,),
        workloads=workloads,
        command="clew up",
        plain_log=True,
        started=started,
    )


def _open_project() -> LocalProject:
    from clew import settings
    from clew.api.local.project import open_local_project
    from clew.cli.project_creation import open_or_create_project
    from clew.errors import NoProject, NotAllowed
    from clew.project_directory import is_accepted

    chosen = settings.load()
    try:
        project = open_local_project(chosen)
    except NoProject:
        open_or_create_project(here=True).close()
        project = open_local_project(chosen)
    if not is_accepted(project.directory, chosen):
        raise NotAllowed(
            f"you did not make the project in {project.root} on this machine, and its notebooks"
            " would run here",
            hint="clew init --trust if you trust it; clew server shows its record only",
        )
    return project


def _show_running(project: LocalProject, *, no_browser: bool, as_json: bool) -> bool:
    """Print and open the address of the server that already serves this project; False: that one
    has ended meanwhile."""
    import hmac

    from clew.errors import Busy
    from clew.kube.workload_tokens import token_digest
    from clew.workloads.local.local_backend import lock_path
    from clew.workloads.local.server_lock import find_running

    running = find_running(lock_path(project.directory), _WAIT_SECONDS)
    if running is None:
        return False
    token = project.settings.token or project.directory.token.read_text().strip()
    if not hmac.compare_digest(token_digest(token), running.token_digest):
        raise Busy(
            f"another `clew up`, with another token, serves this project at {running.address}",
            hint="open the address that it printed, or set CLEW_TOKEN as it was set there",
        )
    _show(running.address, token, None, running=True, as_json=as_json)
    print_message(f"clew: {project.root} is already being served; this is its address")
    if not no_browser:
        _open_browser(f"{running.address}/?token={token}", wait=True)
    return True


def _show(address: str, token: str, apps: str | None, *, running: bool, as_json: bool) -> None:
    if as_json:
        print_json({"address": address, "token": token, "apps": apps, "running": running})
    else:
        print_line(f"{address}/?token={token}")


def _open_browser(address: str, *, wait: bool = False) -> None:
    """Open it in the background: some browsers only return when they are closed."""
    import threading

    from clew.cli import web_page

    thread = threading.Thread(target=web_page.show_server, args=(address,), daemon=True)
    thread.start()
    if wait:
        thread.join()
