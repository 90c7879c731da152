"""`clew agent audit`: fold the audit log of a Kubernetes API server into the graph."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.commands.agent.options import MB, spool_limit_option, state_option
from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "audit",
    short_help="Record Pods, claims, ConfigMaps and requests from the API server's audit log.",
    epilog="Example: clew agent audit --log /var/log/kubernetes/audit/audit.log",
)
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The audit log; its rotated files are found beside it.",
)
@click.option("--once", is_flag=True, help="Read what the log has, deliver it, and end.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Take events from the API server's audit webhook instead.",
)
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --listen: the TLS certificate (PEM).",
)
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --listen: the key of the certificate (PEM).",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --listen: a file with the bearer token that the API server sends.",
)
@state_option("the spool and the checkpoint")
@spool_limit_option(2048, when_full="the agent reads on when there is room", smallest=64)
@json_option
def command(
    log: Path | None,
    once: bool,
    listen: str | None,
    certificate: Path | None,
    key: Path | None,
    token_file: Path | None,
    state: Path | None,
    spool_limit: int,
    as_json: bool,
) -> int:
    """Fold the audit log of a Kubernetes API server into the graph.

    Records Pods with their containers and images, claims and their storage, versions of
    ConfigMaps, Services, controllers, and who touched a Pod by hand. Values of secrets are masked,
    and Secrets are known by name only. The audit policy is deploy/agents/audit/audit-policy.yaml.

    With CLEW_SERVER, everything is sent there; CLEW_TOKEN needs the scope `observe` only. Without,
    it is added to this project.
    """
    import socket

    from clew import settings as environment
    from clew.agents.agent import (
        LAST_SECONDS,
        Witness,
        find_destination,
        run_agent,
        state_directory,
    )
    from clew.agents.audit.ingestion import AuditIngestion, AuditLog
    from clew.agents.spool import Spool
    from clew.errors import UsageError
    from clew.server.log_format import configure

    if (log is None) == (listen is None):
        raise UsageError(
            "name the audit log with --log, or an address with --listen",
            hint="clew agent audit --log /var/log/kubernetes/audit/audit.log",
        )
    configure()
    settings = environment.load()
    state = state or state_directory(settings, "audit")
    destination = find_destination(settings)
    spool = Spool(state / "spool", limit=spool_limit * MB)
    try:
        source = f"{socket.gethostname()}:{log.absolute() if log else listen}"
        ingestion = AuditIngestion(state, spool, source=source, patterns=settings.redact)
        witness: Witness
        if log is not None:
            print_message(f"clew: reading {log}; stop with Ctrl-C")
            witness = AuditLog(log.absolute(), ingestion, once=once)
        else:
            from clew.agents.audit.webhook import AuditWebhook

            assert listen is not None
            witness = AuditWebhook(
                listen, ingestion, certificate=certificate, key=key, token_file=token_file
            )
            print_message(f"clew: listening on {witness.address}; stop with Ctrl-C")
        sender = run_agent(witness, spool, destination, last_seconds=LAST_SECONDS)
        waiting = len(spool.list_batches())
    finally:
        spool.close()
    counts = {
        "lines": ingestion.lines,
        "gaps": ingestion.gaps,
        "delivered": sender.delivered,
        "refused": sender.refused,
        "waiting": waiting,
    }
    if as_json:
        print_json(counts)
    else:
        print_message(f"clew: {ingestion.lines} audit events, {sender.delivered} events delivered")
    return int(once and bool(waiting or sender.refused))
