"""`clew operator`: keep notebooks, TensorBoards and volume viewers as they are wanted."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew import __version__
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, remark

if TYPE_CHECKING:
    from clew.kube.controller.options import Options
    from clew.kube.culling.activity import TrafficSource


@click.command(
    "operator",
    short_help=COMMANDS["operator"],
    epilog="Example: clew operator --namespace research --culling --idle-minutes 120",
)
@click.option(
    "--namespace",
    multiple=True,
    metavar="NAME",
    help="Only there, or where the name is like `team-*`; may be repeated.",
)
@click.option(
    "--istio/--no-istio",
    envvar="USE_ISTIO",
    show_envvar=True,
    help="Lead to each server by a VirtualService.",
)
@click.option(
    "--istio-gateway",
    envvar="ISTIO_GATEWAY",
    show_envvar=True,
    default="kubeflow/kubeflow-gateway",
    show_default=True,
    help="The gateway that leads to them.",
)
@click.option(
    "--istio-host",
    envvar="ISTIO_HOST",
    show_envvar=True,
    default="*",
    show_default=True,
    help="The name under which they are asked.",
)
@click.option(
    "--allow-from",
    envvar="ALLOW_FROM",
    show_envvar=True,
    multiple=True,
    metavar="PEER",
    help="Who may connect to the Pods beside the server: NAMESPACE, NAMESPACE/LABEL=VALUE or a "
    "range of addresses; may be repeated. With Istio, the default is its gateway.",
)
@click.option(
    "--cluster-domain",
    envvar="CLUSTER_DOMAIN",
    show_envvar=True,
    default="cluster.local",
    show_default=True,
    help="What the names of Services end with.",
)
@click.option(
    "--fs-group/--no-fs-group",
    envvar="ADD_FSGROUP",
    show_envvar=True,
    default=True,
    help="Let a notebook's volumes belong to the group 100, unless it says otherwise.",
)
@click.option(
    "--tensorboard-image",
    envvar="TENSORBOARD_IMAGE",
    show_envvar=True,
    default=f"docker.io/clew/tensorboard:{__version__}",
    show_default=True,
    help="What TensorBoards are made of.",
)
@click.option(
    "--rwo-scheduling/--no-rwo-scheduling",
    envvar="RWO_PVC_SCHEDULING",
    show_envvar=True,
    default=True,
    help="Put a TensorBoard where the volume is that one node alone can hold.",
)
@click.option(
    "--viewer-image",
    envvar="VOLUME_VIEWER_IMAGE",
    show_envvar=True,
    default=f"docker.io/clew/clew:{__version__}",
    show_default=True,
    help="What viewers are made of.",
)
@click.option(
    "--viewer-pod",
    envvar="DEFAULT_POD_SPEC_PATH",
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with the Pod of viewers that have none of their own, in YAML.",
)
@click.option(
    "--culling/--no-culling",
    envvar="ENABLE_CULLING",
    show_envvar=True,
    help="Stop idle notebooks; delete idle TensorBoards and viewers.",
)
@click.option(
    "--idle-minutes",
    envvar=["CULL_IDLE_TIME", "IDLE_TIME"],
    show_envvar=True,
    type=click.FloatRange(min=0, min_open=True),
    default=1440,
    show_default=True,
    help="Idle is what was not used for so long.",
)
@click.option(
    "--check-minutes",
    envvar=["IDLENESS_CHECK_PERIOD", "CULLING_CHECK_PERIOD"],
    show_envvar=True,
    type=click.FloatRange(min=0, min_open=True),
    default=1,
    show_default=True,
    help="How often to look.",
)
@click.option(
    "--through-api/--direct",
    envvar="DEV",
    show_envvar=True,
    help="Ask servers through the API server: for an operator outside of the cluster.",
)
@click.option(
    "--prometheus",
    envvar="PROMETHEUS_URL",
    show_envvar=True,
    metavar="ADDRESS",
    help="Where Istio's metrics say when a server was last used.",
)
@click.option(
    "--proxied",
    is_flag=True,
    help="Count as use what passed through clew server: the one that CLEW_SERVER names.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Holds the token for it; without it, CLEW_TOKEN.",
)
@click.option(
    "--metrics-port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where a Prometheus finds /metrics.",
)
@click.option(
    "--health-port",
    default=8081,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where /healthz answers.",
)
@json_option
def command(
    proxied: bool,
    token_file: Path | None,
    metrics_port: int,
    health_port: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Make of each Notebook, Tensorboard and PVCViewer what it asks for, and keep it so.

    It works with the cluster that it runs in, else with the one that KUBECONFIG names.
    """
    from clew.cli.kubernetes import needed

    needed()
    from clew.kube.controller.operator import run_operator
    from clew.server.log_format import configure

    told = options(given)
    configure()
    if as_json:
        ports = {"metrics_port": metrics_port, "health_port": health_port}
        print_json({"namespaces": list(told.namespaces), **ports})
    remark(f"clew: operating {', '.join(told.namespaces) or 'every namespace'}; end with Ctrl-C")
    run_operator(
        told,
        metrics_port=metrics_port,
        health_port=health_port,
        traffic=[_proxied(token_file)] if proxied else [],
    )


def _proxied(token_file: Path | None) -> TrafficSource:
    from clew.errors import UsageError
    from clew.kube.culling.activity import proxied_traffic
    from clew.settings import load

    settings = load()
    if settings.server is None:
        raise UsageError("--proxied: through which server?", hint="CLEW_SERVER=http://clew-server")
    own = settings.token or ""

    def token() -> str:
        return token_file.read_text().strip() if token_file else own

    return proxied_traffic(settings.server, token)


def options(given: dict[str, Any]) -> Options:
    """What was given on the command line or in the environment, as the operator takes it."""
    from clew.errors import UsageError
    from clew.kube.controller.options import GATEWAY, Culling, Istio, Options
    from clew.kube.resources.network_policies import parse_peer

    for name in given["namespace"]:
        if not re.fullmatch(r"[a-z0-9*-]{1,63}", name):
            raise UsageError(
                f"--namespace {name}: no namespace has such a name",
                hint="small letters, digits and dashes; * stands for any of them",
            )
    allow_from = given["allow_from"] or ((GATEWAY,) if given["istio"] else ())
    for peer in allow_from:
        try:
            parse_peer(peer)
        except ValueError as error:
            raise UsageError(f"--allow-from: {error}") from error
    culling = Culling(
        idle=timedelta(minutes=given["idle_minutes"]),
        period=timedelta(minutes=given["check_minutes"]),
        through_api=given["through_api"],
        prometheus=given["prometheus"],
    )
    return Options(
        namespaces=given["namespace"],
        istio=Istio(given["istio_gateway"], given["istio_host"]) if given["istio"] else None,
        cluster_domain=given["cluster_domain"],
        fs_group=given["fs_group"],
        tensorboard_image=given["tensorboard_image"],
        rwo_scheduling=given["rwo_scheduling"],
        viewer_image=given["viewer_image"],
        viewer_pod=_pod(given["viewer_pod"]) if given["viewer_pod"] else None,
        culling=culling if given["culling"] else None,
        allow_from=tuple(allow_from),
    )


def _pod(path: Path) -> dict[str, Any]:
    import yaml

    from clew.errors import UsageError

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not found.get("containers"):
        raise UsageError(f"{path} is no Pod: it names no containers")
    return found
