"""`clew recreate`: make a file again from its lineage."""

from __future__ import annotations

import click

from clew.cli.commands.repeat import DIFFERENT
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, target_argument, yes_option
from clew.cli.output import clean, command_line, confirm, nearest, print_json, remark, say, size
from clew.cli.secrets import run_with_secrets, secret_option


@click.command(
    "recreate",
    short_help=COMMANDS["recreate"],
    epilog="Examples: clew recreate model.pkl --dry-run | clew recreate e2:model.pkl --to /tmp/",
)
@target_argument
@click.option(
    "--to", metavar="PATH", type=click.Path(), help="Write there instead; a folder keeps the name."
)
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs to executions that used them.")
@click.option("--network", is_flag=True, help="Allow the network to executions that used it.")
@secret_option
@dry_run_option
@yes_option
@json_option
def command(
    target: str,
    to: str | None,
    gpu: bool,
    network: bool,
    secrets: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make TARGET again: a version (e2:PATH), or a file that is there no more.

    Where its bytes are stored, or lie on disk as they were, they are taken. Where not, the
    execution that made it is run again in isolation, and before that whatever made its inputs:
    the fewest executions, in order. Each must make the very same bytes; exits with 3 when one
    does not, and nothing is written then.
    """
    import clew

    with clew.open() as project:
        plan = run_with_secrets(
            project,
            secrets,
            lambda: project.recreate(target, to=to, dry_run=True, network=network, gpu=gpu),
        )
        if not as_json:
            for run in plan.runs:
                makes = ", ".join(clean(nearest(path)) for path in run["makes"])
                say(f"{run['execution']}  {command_line(run['command'])}  makes {makes}")
        if plan.loses and not dry_run:
            confirm(
                f"{nearest(plan.path)} is different now, and its present content is stored nowhere",
                "Overwrite it?",
                yes=yes,
                hint="add --yes to overwrite it, or --to PATH to write elsewhere",
            )
        done = plan
        if not dry_run:
            done = project.recreate(
                target,
                to=to,
                overwrite=True,
                network=network,
                gpu=gpu,
                say=lambda text: remark(f"clew: {clean(text)}"),
            )
    if as_json:
        print_json(done.as_json())
    elif done.verdict == "different":
        for one in done.differences:
            remark(f"{one['kind']:<8}  {clean(nearest(one['path']))}")
        remark(f"clew: {clean(done.version)} did not come out the same: nothing was written")
    else:
        verb = "would make" if dry_run else "made"
        remark(f"{verb} {clean(nearest(done.path))} ({size(done.size)}) from {_from(done.runs)}")
    return DIFFERENT if done.verdict == "different" else 0


def _from(runs: tuple[object, ...]) -> str:
    if not runs:
        return "what is kept: nothing is run"
    return "1 execution" if len(runs) == 1 else f"{len(runs)} executions"
