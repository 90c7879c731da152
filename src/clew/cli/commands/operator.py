"""`clew operator`: manage notebooks, TensorBoards and volume viewers on Kubernetes."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew import __version__
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message

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
    help="Manage only this namespace, or those that match a pattern like `team-*`; repeatable.",
)
@click.option(
    "--istio/--no-istio",
    envvar="USE_ISTIO",
    show_envvar=True,
    help="Create a VirtualService for each server.",
)
@click.option(
    "--istio-gateway",
    envvar="ISTIO_GATEWAY",
    show_envvar=True,
    default="kubeflow/kubeflow-gateway",
    show_default=True,
    help="The gateway of the VirtualServices.",
)
@click.option(
    "--istio-host",
    envvar="ISTIO_HOST",
    show_envvar=True,
    default="*",
    show_default=True,
    help="The host of the VirtualServices.",
)
@click.option(
    "--allow-from",
    envvar="ALLOW_FROM",
    show_envvar=True,
    multiple=True,
    metavar="PEER",
    help="Who else may connect to the Pods: NAMESPACE, NAMESPACE/LABEL=VALUE or a CIDR range; "
    "repeatable. With Istio, the default is its gateway.",
)
@click.option(
    "--cluster-domain",
    envvar="CLUSTER_DOMAIN",
    show_envvar=True,
    default="cluster.local",
    show_default=True,
    help="The DNS domain of the cluster.",
)
@click.option(
    "--fs-group/--no-fs-group",
    envvar="ADD_FSGROUP",
    show_envvar=True,
    default=True,
    help="Set fsGroup 100 on notebooks that set none.",
)
@click.option(
    "--tensorboard-image",
    envvar="TENSORBOARD_IMAGE",
    show_envvar=True,
    default=f"docker.io/clew/tensorboard:{__version__}",
    show_default=True,
    help="The image of TensorBoards.",
)
@click.option(
    "--rwo-scheduling/--no-rwo-scheduling",
    envvar="RWO_PVC_SCHEDULING",
    show_envvar=True,
    default=True,
    help="Schedule a TensorBoard on the node where its ReadWriteOnce volume is mounted.",
)
@click.option(
    "--viewer-image",
    envvar="VOLUME_VIEWER_IMAGE",
    show_envvar=True,
    default=f"docker.io/clew/clew:{__version__}",
    show_default=True,
    help="The image of viewers.",
)
@click.option(
    "--viewer-pod",
    envvar="DEFAULT_POD_SPEC_PATH",
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A YAML file with the Pod spec of viewers that define none.",
)
@click.option(
    "--training-jobs/--no-training-jobs",
    envvar="TRAINING_JOBS",
    show_envvar=True,
    default=True,
    help="Manage TFJobs and PyTorchJobs; not beside Kubeflow's training operator.",
)
@click.option(
    "--gang-scheduler",
    envvar="GANG_SCHEDULER_NAME",
    show_envvar=True,
    default="",
    metavar="NAME",
    help="The scheduler that places all Pods of a training job together: volcano, or a "
    "kube-scheduler with the co-scheduling plugin.",
)
@click.option(
    "--pytorch-init-image",
    envvar="PYTORCH_INIT_CONTAINER_IMAGE",
    show_envvar=True,
    default="docker.io/library/alpine:3.10",
    show_default=True,
    help="The image in which workers of a PyTorchJob wait for its master; it needs nslookup.",
)
@click.option(
    "--custom-cluster-domain",
    envvar="CUSTOM_CLUSTER_DOMAIN",
    show_envvar=True,
    default="",
    metavar="DOMAIN",
    help="Follows the names of Services in TF_CONFIG.",
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
    help="Minutes without use after which a server is idle.",
)
@click.option(
    "--check-minutes",
    envvar=["IDLENESS_CHECK_PERIOD", "CULLING_CHECK_PERIOD"],
    show_envvar=True,
    type=click.FloatRange(min=0, min_open=True),
    default=1,
    show_default=True,
    help="Minutes between checks.",
)
@click.option(
    "--through-api/--direct",
    envvar="DEV",
    show_envvar=True,
    help="Query servers through the API server: for an operator outside of the cluster.",
)
@click.option(
    "--prometheus",
    envvar="PROMETHEUS_URL",
    show_envvar=True,
    metavar="ADDRESS",
    help="The Prometheus with Istio's metrics, which show when a server was last used.",
)
@click.option(
    "--remove-reproductions",
    envvar="REMOVE_REPRODUCTIONS",
    show_envvar=True,
    is_flag=True,
    help="Remove what killed clew reproduce commands left.",
)
@click.option(
    "--proxied",
    is_flag=True,
    help="Count requests through the clew server that CLEW_SERVER names as use.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with the token of that server; default: CLEW_TOKEN.",
)
@click.option(
    "--metrics-port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port of /metrics.",
)
@click.option(
    "--health-port",
    default=8081,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port of /healthz.",
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
    """Reconcile the Notebooks, Tensorboards, PVCViewers and training jobs of a cluster.

    The cluster is the one that the operator runs in, else the one that KUBECONFIG names.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    from clew.kube.controller.operator import run_operator
    from clew.server.log_format import configure

    options = parse_options(given)
    configure()
    if as_json:
        ports = {"metrics_port": metrics_port, "health_port": health_port}
        print_json({"namespaces": list(options.namespaces), **ports})
    print_message(
        f"clew: operating {', '.join(options.namespaces) or 'every namespace'}; stop with Ctrl-C"
    )
    run_operator(
        options,
        metrics_port=metrics_port,
        health_port=health_port,
        traffic=[_proxied_source(token_file)] if proxied else [],
    )


def _proxied_source(token_file: Path | None) -> TrafficSource:
    from clew.errors import UsageError
    from clew.kube.culling.activity import proxied_traffic
    from clew.settings import load

    settings = load()
    if settings.server is None:
        raise UsageError(
            "--proxied needs the address of the server", hint="CLEW_SERVER=http://clew-server"
        )
    default = settings.token or ""

    def token() -> str:
        return token_file.read_text().strip() if token_file else default

    return proxied_traffic(settings.server, token)


def parse_options(given: dict[str, Any]) -> Options:
    """The operator's options from the command line and the environment."""
    from clew.errors import UsageError
    from clew.kube.controller.options import GATEWAY, Culling, Istio, Options
    from clew.kube.resources.network_policies import parse_peer

    for name in given["namespace"]:
        if not re.fullmatch(r"[a-z0-9*-]{1,63}", name):
            raise UsageError(
                f"--namespace {name} is not a valid name of a namespace",
                hint="use lowercase letters, digits and dashes; * matches any of them",
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
        training_jobs=given["training_jobs"],
        gang_scheduler=given["gang_scheduler"],
        pytorch_init_image=given["pytorch_init_image"],
        custom_cluster_domain=given["custom_cluster_domain"],
        rwo_scheduling=given["rwo_scheduling"],
        viewer_image=given["viewer_image"],
        viewer_pod=_read_pod(given["viewer_pod"]) if given["viewer_pod"] else None,
        culling=culling if given["culling"] else None,
        allow_from=tuple(allow_from),
        remove_reproductions=given["remove_reproductions"],
    )


def _read_pod(path: Path) -> dict[str, Any]:
    import yaml

    from clew.errors import UsageError

    try:
        pod = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    if not isinstance(pod, dict) or not pod.get("containers"):
        raise UsageError(f"{path} is not a Pod spec: it has no containers")
    return pod
