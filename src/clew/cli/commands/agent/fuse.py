"""`clew agent fuse`: let containers of this node open /dev/fuse."""

from __future__ import annotations

from pathlib import Path

import click

from clew.agents.pod.file_sidecar_names import DEVICE
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "fuse",
    short_help="Let the containers of this node that ask for it open /dev/fuse.",
    epilog="Example: clew agent fuse --count 500",
)
@click.option(
    "--resource",
    default=DEVICE,
    show_default=True,
    help="The name of the extended resource that a container asks for.",
)
@click.option(
    "--count",
    default=1000,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="How many containers of the node may have it at once.",
)
@click.option(
    "--node",
    envvar="NODE_NAME",
    help="The name of this node, for the socket; default: NODE_NAME, else the host name.",
)
@click.option(
    "--plugins",
    type=click.Path(file_okay=False, path_type=Path),
    help="The kubelet's directory for device plugins; default: /var/lib/kubelet/device-plugins.",
)
@json_option
def command(
    resource: str, count: int, node: str | None, plugins: Path | None, as_json: bool
) -> None:
    """Let the containers of this node that ask for it open /dev/fuse.

    A device plugin of Kubernetes: the one part of the file witness in Pods (clew agent pod) that
    needs a directory of the node. It has no capability. Any other device plugin that offers
    /dev/fuse does as well: name its resource with clew agent inject --fuse-device.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import signal
    import socket
    import threading

    from clew.agents.pod.fuse_device import PLUGINS, FuseDevice
    from clew.server.log_format import configure

    configure()
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    name = f"clew-fuse-{(node or socket.gethostname())[:50]}"  # the name of a socket is short
    device = FuseDevice(resource, count=count, name=name, plugins=plugins or PLUGINS)
    if as_json:
        print_json({"resource": resource, "count": count})
    else:
        print_message(f"clew: offering {resource}")
    device.run(stopping)
