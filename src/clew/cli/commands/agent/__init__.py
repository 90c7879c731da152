"""`clew agent`: what observes a cluster, one module for each agent."""

import click

from clew.cli.commands.agent.audit import command as audit
from clew.cli.commands.agent.fuse import command as fuse
from clew.cli.commands.agent.inject import command as inject
from clew.cli.commands.agent.latency import command as latency
from clew.cli.commands.agent.node import command as node
from clew.cli.commands.agent.pod import command as pod
from clew.cli.commands.agent.recreate import command as recreate
from clew.cli.main import COMMANDS


@click.group(
    "agent",
    short_help=COMMANDS["agent"],
    epilog="Example: clew agent audit --log /var/log/kubernetes/audit/audit.log",
)
def command() -> None:
    """Observe a Kubernetes cluster and send what runs there to the server, or to this project."""


for _command in (audit, fuse, inject, latency, node, pod, recreate):
    command.add_command(_command)
