"""`clew push`: executions for others."""

from __future__ import annotations

import click

from clew.cli.main import COMMANDS
from clew.cli.options import complete_executions, json_option
from clew.cli.output import clean, command_line, print_json, remark, size
from clew.cli.progress import progress


@click.command(
    "push",
    short_help=COMMANDS["push"],
    epilog="Examples: clew push /mnt/shared/paper | clew push s3://bucket/paper e2",
)
@click.argument("url", metavar="URL")
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=complete_executions)
@click.option("--no-sign", is_flag=True, help="Do not sign, although there is a key.")
@json_option
def command(url: str, ids: tuple[str, ...], no_sign: bool, as_json: bool) -> None:
    """Send executions to URL, a folder or s3://bucket/prefix: all that are not there, or those
    named.

    Only content that is missing there travels. A push that was cut short goes on where it was.
    What was recorded here is signed if there is a key (clew key create).
    How S3 is reached is taken from the AWS_* variables of the environment.
    """
    import clew

    with clew.open() as project, progress("sending") as draw:
        done = project.push(url, ids or None, sign=not no_sign, progress=draw)
    if as_json:
        print_json(done.as_json())
        return
    for text in done.remarks:
        remark(clean(text))
    for execution in done.executions:
        remark(f"{execution.id}  {command_line(execution.command)}")
    count = f"{len(done.executions)} execution" + ("s" if len(done.executions) != 1 else "")
    remark(f"pushed {count} ({size(done.bytes)} sent)" if count[0] != "0" else "all is there")
