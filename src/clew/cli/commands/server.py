"""`clew server`: serve a project over HTTP."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, remark, say


@click.command(
    "server",
    short_help=COMMANDS["server"],
    epilog="Example: clew server --port 8100",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8100,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0: any that is free.",
)
@click.option("--graph", metavar="ADDRESS", help="A PostgreSQL to keep the graph in: CLEW_GRAPH.")
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    metavar="N",
    help="How many pipelines may run at once; default: one per core. 0: queue runs only.",
)
@click.option(
    "--on-host", is_flag=True, help="Run container components as processes, without their images."
)
@click.option(
    "--targets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The notebooks, TensorBoards and viewers that are reached through the server.",
)
@click.option(
    "--on-cluster",
    is_flag=True,
    help="Those are what runs on the cluster: the one it runs in, else that of KUBECONFIG.",
)
@click.option(
    "--token-secret",
    metavar="NAME",
    help="A Secret of its namespace that holds the token; where there is none, it is made.",
)
@click.option(
    "--apps-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port on which those are served; one more than --port.",
)
@click.option(
    "--apps-origin",
    metavar="ORIGIN",
    help="How browsers see that port; {kind}, {namespace}, {name} and {id} give each its own.",
)
@json_option
def command(
    host: str,
    port: int,
    graph: str | None,
    runs: int | None,
    on_host: bool,
    targets: Path | None,
    on_cluster: bool,
    token_secret: str | None,
    apps_port: int | None,
    apps_origin: str | None,
    as_json: bool,
) -> None:
    """Serve this project: to the stock kfp client and command line, and by an API of its own.

    The address that is printed holds the token, without which nothing is answered; not where a
    Secret holds it, since what a Pod prints is kept.
    """
    import clew
    from clew import settings
    from clew.api.local.project import open_local_project
    from clew.cli.kubernetes import needed
    from clew.errors import NoProject, UsageError
    from clew.server.listener import serve

    if on_cluster and targets:
        raise UsageError("--targets and --on-cluster say different things", hint="leave one out")
    if not (on_cluster or targets) and (apps_port is not None or apps_origin):
        raise UsageError(
            "--apps-port and --apps-origin: there is nothing to serve there",
            hint="name it with --targets or --on-cluster",
        )
    if on_cluster or token_secret:
        needed()

    try:
        project = open_local_project(settings.load())
    except NoProject:
        project = clew.init(".")
        remark(f"clew: made a project in {project.root}")

    def started(address: str, token: str, apps: str | None) -> None:
        if token_secret:
            say(address)
        elif as_json:
            print_json({"address": address, "token": token, "apps": apps})
        else:
            say(f"{address}/?token={token}")
        if apps:
            remark(f"clew: notebooks, TensorBoards and viewers are served at {apps}")
        remark(f"clew: serving {project.root}; end with Ctrl-C")

    serve(
        project.directory,
        project.settings,
        host=host,
        port=port,
        graph=graph,
        runs=runs,
        on_host=on_host,
        targets=targets,
        on_cluster=on_cluster,
        token_secret=token_secret,
        apps_port=apps_port,
        apps_origin=apps_origin,
        started=started,
    )
