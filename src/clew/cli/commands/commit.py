"""`clew commit`: run a checkout with its changes and record it."""

from pathlib import Path

import click

from clew.cli.commands.repeat import print_report
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import escape, print_json, print_message
from clew.cli.secrets import run_with_secrets, secret_option
from clew.errors import ClewError


@click.command(
    "commit",
    short_help=COMMANDS["commit"],
    epilog='Example: clew commit -m "half the learning rate"',
)
@click.option("-m", "--message", metavar="TEXT", help="A note on the new execution.")
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs, if the execution used them.")
@click.option("--network", is_flag=True, help="Give the command this machine's network.")
@secret_option
@click.argument(
    "folder", metavar="[DIR]", required=False, type=click.Path(exists=True, path_type=Path)
)
@json_option
def command(
    message: str | None,
    gpu: bool,
    network: bool,
    secrets: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
) -> int:
    """Run a checked-out execution with the changed files, record it as a new execution, and
    compare the two.

    The checkout is the one that contains DIR, or the current directory. The command runs in
    isolation, as with `clew repeat`, and writes nothing in the checkout. If it succeeds, the
    checkout moves to the new execution.
    """
    import clew

    with clew.open(folder, checkout=True) as project:
        result = run_with_secrets(
            project,
            secrets,
            lambda: project.commit(
                message,
                folder=folder,
                network=network,
                gpu=gpu,
                quiet=as_json,
                say=lambda text: print_message(f"clew: {escape(text)}"),
            ),
        )
    if as_json:
        print_json(result.as_json())
    elif result.execution.id == result.of:
        print_message(f"clew: no changes since {result.of}; nothing was run")
    else:
        print_report(result, incremental=True)
    if result.execution.state == "done" or result.execution.id == result.of:
        return 0
    if not as_json:
        print_message(
            f"clew: the command failed; the checkout stays at {result.of} and keeps its changes"
        )
    return ClewError.exit_status
