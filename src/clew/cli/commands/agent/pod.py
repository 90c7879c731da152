"""`clew agent pod`: record which files on volumes the containers of one Pod read and write."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.commands.agent.options import MB, read_policy, spool_limit_option
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "pod",
    short_help="Record which files on volumes the containers of this Pod read and write.",
    epilog="Example: clew agent pod --state /var/lib/clew",
)
@click.option("--namespace", envvar="POD_NAMESPACE", required=True, help="Of the Pod.")
@click.option("--name", envvar="POD_NAME", required=True, help="Of the Pod.")
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What is watched and stored (TOML); default, also if there is no such file: all claims.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the spool is; default: in the user's state directory.",
)
@spool_limit_option(1024, when_full="what does not fit is counted and reported as a gap")
@json_option
def command(
    namespace: str,
    name: str,
    policy: Path | None,
    state: Path | None,
    spool_limit: int,
    as_json: bool,
) -> None:
    """Record which files on volumes the containers of this Pod read and write.

    The sidecar that `clew agent inject` adds to Pods with the annotation
    clew.dev/file-witness=sidecar, for clusters where no privileged agent may run. The containers
    mount the layers themselves; this serves them, and sends what it sees to CLEW_SERVER.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import logging

    from clew import settings as environment
    from clew.agents.agent import find_destination, run_agent, state_directory
    from clew.agents.pod.pod_agent import PodAgent
    from clew.agents.spool import Spool
    from clew.kube.own_pod import OwnPod
    from clew.server.log_format import configure

    configure()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request
    settings = environment.load()
    chosen = read_policy(policy if policy and policy.exists() else None)
    state = state or state_directory(settings, "pod")
    destination = find_destination(settings)
    spool = Spool(state / "spool", limit=spool_limit * MB)
    try:
        agent = PodAgent(OwnPod(namespace, name), spool, state, chosen)
        print_message(f"clew: watching the containers of {namespace}/{name}")
        sender = run_agent(agent, spool, destination)
    finally:
        spool.close()
    counts = {
        "containers": agent.files.counts["containers"],
        "events": agent.files.counts["events"],
        "lost": agent.files.counts["lost"],
        "delivered": sender.delivered,
        "refused": sender.refused,
    }
    if as_json:
        print_json(counts)
    else:
        print_message(
            f"clew: {counts['containers']} containers, {sender.delivered} events delivered"
        )
