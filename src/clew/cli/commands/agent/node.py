"""`clew agent node`: watch the volumes of the Pods on this node."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.commands.agent.options import (
    MB,
    node_name_option,
    read_policy,
    spool_limit_option,
    state_option,
)
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "node",
    short_help="Record which files on volumes the Pods of this node read and write.",
    epilog="Example: clew agent node --node worker-1 --policy policy.toml",
)
@node_name_option
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What is watched, read and stored (TOML); default: all claims and sidecars outside of "
    "kube-system.",
)
@click.option(
    "--cgroup",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory with the cgroups of this node's Pods; default: it is found.",
)
@click.option(
    "--kubelet",
    type=click.Path(file_okay=False, path_type=Path),
    help="The kubelet's directory, where the logs of sidecars are; default: /var/lib/kubelet.",
)
@state_option("the spool and the numbers of versions")
@spool_limit_option(2048, when_full="what does not fit is counted and reported as a gap")
@json_option
def command(
    name: str | None,
    policy: Path | None,
    cgroup: Path | None,
    kubelet: Path | None,
    state: Path | None,
    spool_limit: int,
    as_json: bool,
) -> None:
    """Watch the volumes of the Pods on this node.

    Records every file that a container reads, writes, renames or removes on a claim, with the
    digest of its content. Reads the logs of the sidecars that `clew agent inject` adds, which have
    the requests to object stores. Neither Pods nor images change. It needs Linux 5.17, the
    processes and cgroups of the node, and CAP_SYS_ADMIN: deploy/agents/node starts it everywhere.

    With CLEW_SERVER, everything is sent there; CLEW_TOKEN needs the scope `observe` only. Without,
    it is added to this project.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    import logging
    import socket

    from clew import settings as environment
    from clew.agents.agent import LAST_SECONDS, find_destination, run_agent, state_directory
    from clew.agents.node.node_agent import make_witness
    from clew.agents.spool import Spool
    from clew.server.log_format import configure

    configure()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every request
    settings = environment.load()
    state = state or state_directory(settings, "node")
    destination = find_destination(settings)
    spool = Spool(state / "spool", limit=spool_limit * MB)
    try:
        witness = make_witness(
            settings,
            spool,
            state,
            node=name or socket.gethostname(),
            policy=read_policy(policy),
            cgroup=cgroup,
            kubelet=kubelet,
        )
        print_message("clew: watching the Pods of this node; stop with Ctrl-C")
        sender = run_agent(witness, spool, destination, last_seconds=LAST_SECONDS)
        waiting = len(spool.list_batches())
    finally:
        spool.close()
    counts = {
        "containers": witness.files.counts["containers"],
        "requests": witness.sidecars.lines,
        "events": witness.files.counts["events"],
        "lost": witness.files.counts["lost"],
        "overflows": witness.files.counts["overflows"],
        "delivered": sender.delivered,
        "refused": sender.refused,
        "waiting": waiting,
    }
    if as_json:
        print_json(counts)
    else:
        print_message(
            f"clew: {counts['containers']} containers, {sender.delivered} events delivered"
        )
