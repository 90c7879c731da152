"""`clew agent inject`: add the sidecars that see requests and files to selected Pods."""

from __future__ import annotations

import click

from clew import __version__
from clew.agents.pod.file_sidecar_names import DEVICE
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message

IMAGE = f"docker.io/clew/sidecar:{__version__}"
FILES_IMAGE = f"docker.io/clew/clew:{__version__}"


@click.command(
    "inject",
    short_help="Add the sidecars that see S3 requests and files to the Pods that are selected.",
    epilog="Example: clew agent inject --listen 0.0.0.0:8443",
)
@click.option(
    "--listen",
    default="0.0.0.0:8443",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to serve.",
)
@click.option(
    "--image",
    default=IMAGE,
    show_default=True,
    help="The image of the sidecar that sees requests.",
)
@click.option(
    "--files-image",
    default=FILES_IMAGE,
    show_default=True,
    help="The image of the sidecar that sees files.",
)
@click.option(
    "--fuse-device",
    default=DEVICE,
    show_default=True,
    metavar="RESOURCE",
    help="The extended resource that gives a container /dev/fuse.",
)
@click.option(
    "--name",
    default="clew-inject",
    show_default=True,
    help="The name of the Service, the Secret and the MutatingWebhookConfiguration.",
)
@click.option("--namespace", help="Where the Service and the Secret are; default: our own.")
@json_option
def command(
    listen: str,
    image: str,
    files_image: str,
    fuse_device: str,
    name: str,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Add the sidecars that see S3 requests and files to the Pods that are selected.

    Serves an admission webhook over HTTPS. It issues and renews its certificate itself, in a
    Secret, and tells the API server which authority to trust. Namespaces and Pods with the label
    clew.dev/sidecar=true get the one that sees requests, Pods with the annotation
    clew.dev/file-witness=sidecar the one that sees files: deploy/agents/inject has the manifests.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import logging
    import signal
    import threading
    from functools import partial

    from clew.agents.pod.layer_injection import inject_layer
    from clew.agents.sidecars.sidecar_injection import inject_sidecar
    from clew.agents.sidecars.webhook_server import WebhookServer
    from clew.kube.webhook_objects import WebhookObjects
    from clew.server.log_format import configure

    configure()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    changes = {
        "/pods": partial(inject_sidecar, image=image),
        "/files": partial(inject_layer, image=files_image, device=fuse_device),
    }
    server = WebhookServer(listen, changes=changes, objects=WebhookObjects(name, namespace))

    def report_ready() -> None:
        if as_json:
            print_json({"address": listen, "image": image})
        else:
            print_message(f"clew: serving on {listen}")

    server.run(stopping, ready=report_ready)
