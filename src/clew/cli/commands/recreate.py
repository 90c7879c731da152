"""`clew recreate`: recreate a file from its lineage."""

import click

from clew.cli.commands.repeat import DIFFERENT
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option, target_argument, yes_option
from clew.cli.output import (
    confirm,
    escape,
    format_command,
    format_size,
    print_json,
    print_line,
    print_message,
    shorten_path,
)
from clew.cli.secrets import run_with_secrets, secret_option


@click.command(
    "recreate",
    short_help=COMMANDS["recreate"],
    epilog="Examples: clew recreate model.pkl --dry-run | clew recreate e2:model.pkl --to /tmp/",
)
@target_argument
@click.option(
    "--to",
    metavar="PATH",
    type=click.Path(),
    help="Write there instead; in a directory, the file keeps its name.",
)
@click.option("--gpu", is_flag=True, help="Allow this machine's GPUs to executions that used them.")
@click.option("--network", is_flag=True, help="Give the commands this machine's network.")
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
    """Recreate TARGET: a version (e2:PATH), or a file that was deleted.

    Content that is stored (also inside an archive), or is still unchanged on disk, is used.
    Otherwise the execution that made the file is run again in isolation, after the executions that
    made its missing inputs: as few as possible, in order. Each must produce identical bytes. If
    one does not, nothing is written and the exit status is 3.
    """
    import clew

    with clew.open() as project:
        plan = run_with_secrets(
            project,
            secrets,
            lambda: project.recreate(target, to=to, dry_run=True, network=network, gpu=gpu),
        )
        if not as_json:
            for unpacked in plan.unpacked:
                archive = escape(shorten_path(unpacked.archive))
                print_line(f"unpack {escape(unpacked.member or '')} from {archive}")
            for run in plan.runs:
                makes = ", ".join(escape(shorten_path(path)) for path in run.makes)
                print_line(f"{run.execution}  {format_command(run.command)}  makes {makes}")
                for copy in run.copies:
                    start, end = (escape(shorten_path(path)) for path in (copy.start, copy.end))
                    print_line(f"    then copy {start} to {end}, which has the same bytes")
        if plan.loses and not dry_run:
            confirm(
                f"{shorten_path(plan.path)} has changed, and its current content is not stored",
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
                say=lambda text: print_message(f"clew: {escape(text)}"),
            )
    if as_json:
        print_json(done.as_json())
    elif done.verdict == "different":
        for difference in done.differences:
            path = escape(shorten_path(difference.path))
            print_message(f"{difference.kind:<8}  {path}")
        print_message(
            f"clew: {escape(done.version)} was recreated with other content: nothing was written"
        )
    else:
        verb = "would recreate" if dry_run else "recreated"
        path, sources = escape(shorten_path(done.path)), _describe_sources(done.runs)
        print_message(f"{verb} {path} ({format_size(done.size)}) from {sources}")
    return DIFFERENT if done.verdict == "different" else 0


def _describe_sources(runs: tuple[object, ...]) -> str:
    if not runs:
        return "stored content; nothing has to run"
    return "1 execution" if len(runs) == 1 else f"{len(runs)} executions"
