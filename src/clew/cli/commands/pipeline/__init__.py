"""`clew pipeline`: the commands for Kubeflow pipelines, one module each."""

import click

from clew.cli.commands.pipeline.cancel import command as cancel
from clew.cli.commands.pipeline.list import command as list_runs
from clew.cli.commands.pipeline.logs import command as logs
from clew.cli.commands.pipeline.resume import command as resume
from clew.cli.commands.pipeline.run import command as run
from clew.cli.commands.pipeline.show import command as show
from clew.cli.commands.pipeline.why import command as why
from clew.cli.main import COMMANDS


@click.group(
    "pipeline",
    short_help=COMMANDS["pipeline"],
    epilog="Example: clew pipeline run train.yaml -p rate=0.1",
)
def command() -> None:
    """Run pipelines of the kfp SDK on this machine and record every task as an execution."""


for _command in (run, list_runs, show, logs, why, cancel, resume):
    command.add_command(_command)
