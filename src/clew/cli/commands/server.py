"""`clew server`: serve a project over HTTP."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_line, print_message


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
    help="The port to listen on; 0: any free port.",
)
@click.option(
    "--graph", metavar="ADDRESS", help="The PostgreSQL database of the graph; default: CLEW_GRAPH."
)
@click.option(
    "--runs",
    type=click.IntRange(min=0),
    metavar="N",
    help="Pipeline runs at the same time; default: one per core. 0: only queue runs.",
)
@click.option(
    "--on-host",
    is_flag=True,
    help="Run container components as processes of this machine, without their images.",
)
@click.option(
    "--targets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A list of notebooks, TensorBoards and viewers to proxy.",
)
@click.option(
    "--on-cluster",
    is_flag=True,
    help="Show and proxy those of the Kubernetes cluster: the surrounding one, else that of "
    "KUBECONFIG. With CLEW_ARTIFACTS, the tasks of pipelines are Pods there.",
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="With --on-cluster: use only this namespace, or those that match a pattern like `team-*`; "
    "repeatable.",
)
@click.option(
    "--culling/--no-culling",
    envvar="ENABLE_CULLING",
    show_envvar=True,
    help="With --on-cluster: say that the operator ends what is idle.",
)
@click.option(
    "--idle-minutes",
    envvar=["CULL_IDLE_TIME", "IDLE_TIME"],
    show_envvar=True,
    type=click.FloatRange(min=0, min_open=True),
    default=1440,
    show_default=True,
    help="With --on-cluster: say after how many minutes.",
)
@click.option(
    "--token-secret",
    metavar="NAME",
    help="A Secret in the server's namespace for the token; it is created if missing.",
)
@click.option(
    "--apps-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port for proxied applications; default: --port plus 1.",
)
@click.option(
    "--apps-origin",
    metavar="ORIGIN",
    help="The origin of that port in browsers; {kind}, {namespace}, {name} and {id} are replaced.",
)
@click.option(
    "--samples/--no-samples",
    default=True,
    show_default=True,
    help="Add the sample pipelines to the catalogue, once.",
)
@click.option(
    "--spawner-config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What the form of notebooks offers and allows; default: .clew/spawner_ui_config.yaml.",
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
    namespaces: tuple[str, ...],
    culling: bool,
    idle_minutes: float,
    token_secret: str | None,
    apps_port: int | None,
    apps_origin: str | None,
    samples: bool,
    spawner_config: Path | None,
    as_json: bool,
) -> None:
    """Serve this project over HTTP: the API of Kubeflow Pipelines, for the kfp client and command
    line, and Clew's own API.

    Every request needs a token. The printed address contains it, except with --token-secret, since
    the output of a Pod is stored.
    """
    import clew
    from clew import settings
    from clew.api.local.project import open_local_project
    from clew.cli.kubernetes_extra import require_kubernetes
    from clew.documents.workloads.workload import Culling
    from clew.errors import NoProject, UsageError
    from clew.pipelines.runs.cluster_options import choose_for_server
    from clew.server import workload_source
    from clew.server.listener import serve

    if on_cluster and targets:
        raise UsageError("--targets and --on-cluster exclude each other", hint="use one of them")
    if namespaces and not on_cluster:
        raise UsageError("--namespace is for --on-cluster", hint="add --on-cluster")
    if not (on_cluster or targets) and (apps_port is not None or apps_origin):
        raise UsageError(
            "--apps-port and --apps-origin need applications to proxy",
            hint="add --targets or --on-cluster",
        )
    if on_cluster or token_secret:
        require_kubernetes()

    try:
        project = open_local_project(settings.load())
    except NoProject:
        project = clew.init(".")
        print_message(f"clew: created a project in {project.root}")

    def started(address: str, token: str, apps: str | None) -> None:
        if token_secret:
            print_line(address)
        elif as_json:
            print_json({"address": address, "token": token, "apps": apps})
        else:
            print_line(f"{address}/?token={token}")
        if apps:
            print_message(f"clew: notebooks, TensorBoards and viewers are served at {apps}")
        print_message(f"clew: serving {project.root}; end with Ctrl-C")

    workloads, cluster = workload_source.NOTHING, None
    if on_cluster:
        cluster = choose_for_server(project.settings, clew.__version__, namespaces)
        told = Culling(enabled=culling, idle_minutes=idle_minutes if culling else None)
        workloads = workload_source.from_cluster(namespaces, told)
    elif targets:
        workloads = workload_source.from_file(targets)
    serve(
        project.directory,
        project.settings,
        host=host,
        ports=(port,),
        workloads=workloads,
        command="clew server",
        graph=graph,
        runs=runs,
        on_host=on_host,
        cluster=cluster,
        token_secret=token_secret,
        apps_port=apps_port,
        apps_origin=apps_origin,
        samples=samples,
        spawner_config=spawner_config and spawner_config.absolute(),
        started=started,
    )
