"""`clew scheduler`: tell kube-scheduler which node is nearest to a Pod's clients."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "scheduler",
    short_help=COMMANDS["scheduler"],
    epilog="Example: clew scheduler --listen 127.0.0.1:8888",
)
@click.option(
    "--listen",
    default="127.0.0.1:8888",
    show_default=True,
    metavar="HOST:PORT",
    help="Where kube-scheduler asks: /filter and /prioritize, with /healthz and /metrics.",
)
@click.option(
    "--metrics-listen",
    metavar="HOST:PORT",
    help="Serve /healthz and /metrics there as well, and nothing else.",
)
@click.option("--certificate", type=_FILE, help="Serve over HTTPS with this certificate (PEM).")
@click.option("--key", type=_FILE, help="The key of the certificate (PEM).")
@click.option(
    "--client-ca",
    type=_FILE,
    help="Answer only who has a certificate of this authority (PEM). It is needed unless --listen "
    "is a loopback address.",
)
@click.option(
    "--locations",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also use the latencies that `clew agent latency` measures, and predict the others: a "
    "directory with a file for each location, as a ConfigMap is mounted.",
)
@json_option
def command(
    listen: str,
    metrics_listen: str | None,
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    locations: Path | None,
    as_json: bool,
) -> None:
    """Tell kube-scheduler which node is nearest to a Pod's clients.

    A scheduler extender: kube-scheduler asks it about each Pod. It decides about Pods with the
    labels typeOfComponent: Predict (or Predicting, Serving) and OurLocation: LOCATION, by the
    latencies of the nodes to that location. All other Pods it leaves to kube-scheduler.
    deploy/scheduler has the manifests.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import logging

    from clew.kube.scheduler.options import Options, parse_address
    from clew.kube.scheduler.service import run_scheduler
    from clew.server.log_format import configure

    configure()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request
    options = Options(
        parse_address(listen, "--listen"),
        metrics=parse_address(metrics_listen, "--metrics-listen") if metrics_listen else None,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        locations=locations,
    )

    def report_ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            print_message(f"clew: kube-scheduler can ask {address}; stop with Ctrl-C")

    run_scheduler(options, ready=report_ready)
