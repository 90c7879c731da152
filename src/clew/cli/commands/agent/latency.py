"""`clew agent latency`: measure the latencies from this node to the locations of clients."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.commands.agent.options import node_name_option
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "latency",
    short_help="Measure the latencies from this node to the locations of clients.",
    epilog="Example: clew agent latency --node worker-1 --locations /etc/clew-locations",
)
@node_name_option
@click.option(
    "--locations",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="A directory with a file for each location, as a ConfigMap is mounted: its name, and "
    "HOST:PORT (TCP) or HOST (ICMP echo).",
)
@click.option(
    "--interval",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="How often each target is probed, five times each.",
)
@click.option(
    "--metrics-listen",
    metavar="HOST:PORT",
    help="Serve Prometheus metrics there.",
)
@json_option
def command(
    name: str | None,
    locations: Path,
    interval: float,
    metrics_listen: str | None,
    as_json: bool,
) -> None:
    """Measure the latencies from this node to the locations of clients.

    Probes each location that an administrator configured, and what the scheduler asks for, and
    publishes the latencies as the NodeLatency of this node. `clew scheduler --locations` places
    Pods by them. It needs no privilege: deploy/agents/latency starts it on every node.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import logging
    import signal
    import socket
    import threading

    from clew.agents.latency.latency_agent import LatencyAgent
    from clew.kube.latency.node_latency_client import NodeLatencyClient
    from clew.kube.scheduler.options import parse_address
    from clew.server.log_format import configure

    configure()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request
    name = name or socket.gethostname()
    own = NodeLatencyClient(name)
    agent = LatencyAgent(name, locations, own.publish, interval=interval)
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        agent.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if metrics_listen:
        agent.metrics.serve(parse_address(metrics_listen, "--metrics-listen"))
    own.follow(agent.ask)
    if as_json:
        print_json({"node": name, "locations": str(locations)})
    else:
        print_message(f"clew: measuring latencies from {name}; stop with Ctrl-C")
    agent.run(stopping)
