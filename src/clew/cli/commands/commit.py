"""`clew commit`: run a checked-out execution again, with what was changed."""

from __future__ import annotations

from pathlib import Path

import click

from clew.cli.commands.repeat import report
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, print_json, remark
from clew.cli.secrets import run_with_secrets, secret_option
from clew.errors import ClewError


@click.command(
    "commit",
    short_help=COMMANDS["commit"],
    epilog='Example: clew commit -m "half the learning rate"',
)
@click.option("-m", "--message", metavar="TEXT", help="A note on the new execution.")
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs, if the execution used them.")
@click.option("--network", is_flag=True, help="Allow the network, if the execution used it.")
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
    """Run the execution again with what was changed in the checkout that DIR, or the current
    folder, lies in; record it as a new one that came from it, and compare.

    It runs in isolation, as with `clew repeat`; nothing in the checkout is written. If it ends
    well, the checkout is one of the new execution from then on.
    """
    import clew

    with clew.open(folder, checkout=True) as project:
        done = run_with_secrets(
            project,
            secrets,
            lambda: project.commit(
                message,
                folder=folder,
                network=network,
                gpu=gpu,
                quiet=as_json,
                say=lambda text: remark(f"clew: {clean(text)}"),
            ),
        )
    if as_json:
        print_json(done.as_json())
    elif done.execution.id == done.of:
        remark(f"clew: nothing was changed since {done.of}: nothing ran")
    else:
        report(done.as_json(), incremental=True)
    if done.execution.state == "done" or done.execution.id == done.of:
        return 0
    if not as_json:
        remark(f"clew: the command failed: the checkout stays at {done.of}, with its changes")
    return ClewError.exit_status
