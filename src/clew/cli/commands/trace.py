"""`clew trace`: show where a file came from, or what was made from it."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option, target_argument, web_option
from clew.cli.output import print_bytes, print_json, print_line, print_message, select_fields

depth_option = click.option(
    "--depth", metavar="N", type=click.IntRange(min=1), help="Follow at most N processes."
)
all_option = click.option(
    "--all", "everything", is_flag=True, help="Include files of installed packages."
)


@click.command(
    "trace",
    short_help=COMMANDS["trace"],
    epilog="Examples: clew trace model.pkl | clew trace e2:data.csv --down | "
    "clew trace model.pkl --html -o lineage.html",
)
@target_argument
@click.option("--up", is_flag=True, help="Show where it came from (default).")
@click.option("--down", is_flag=True, help="Show what was made from it.")
@depth_option
@all_option
@click.option("--dot", is_flag=True, help="Print Graphviz text.")
@click.option("--html", is_flag=True, help="Write an HTML page.")
@web_option
@json_option
@pager_option
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Write there; - is stdout.")
def command(
    target: str,
    up: bool,
    down: bool,
    depth: int | None,
    everything: bool,
    dot: bool,
    html: bool,
    web: bool,
    as_json: bool,
    output: str | None,
) -> None:
    """Show the lineage of TARGET as a tree, across executions, back to the sources.

    TARGET is a file (PATH as it is now, e2:PATH as an execution left it), a process (e2.p3) or
    an execution (e2). "changed outside" marks a file that was changed after the last recorded
    process wrote it.
    """
    if up and down:
        raise click.UsageError("--up and --down exclude each other: trace twice")
    if dot + html + as_json > 1:
        raise click.UsageError("--json, --dot and --html exclude each other")
    if web and (dot or html or output):
        raise click.UsageError("--web excludes --dot, --html and -o")
    import clew

    with clew.open() as project:
        found = project.lineage(
            target, direction="down" if down else "up", depth=depth, everything=everything
        )
        if web:
            from clew.cli.web_page import open_lineage

            open_lineage(project, found, as_json=as_json)
            return
    lineage = found.as_json()
    if as_json and not output:
        print_json(lineage)
        return
    if as_json:
        import json

        lines: Iterable[str] = [json.dumps(select_fields(lineage), ensure_ascii=False)]
    elif html:
        from clew.cli.lineage import page

        lines = [page.render(lineage, version=clew.__version__)]
    elif dot:
        from clew.cli.lineage import dot as graphviz

        lines = graphviz.lines(lineage, everything=everything)
    else:
        from clew.cli.lineage import tree

        lines = tree.lines(lineage, everything=everything)
    _write(lines, output, html=html)
    if lineage["truncated"]:
        print_message("the lineage is truncated: limit it with --depth, or trace a file in it")
    if not lineage["edges"] and lineage["nodes"][0].get("changed_outside"):
        print_message(f"its recorded versions: clew restore --list {target}")


def _write(lines: Iterable[str], output: str | None, *, html: bool) -> None:
    if output is None and html and sys.stdout.isatty():
        output = "lineage.html"
    if output in (None, "-"):
        if html:
            print_bytes("\n".join(lines).encode())
            return
        for line in lines:
            print_line(line)
        return
    assert output is not None
    from clew.errors import NotAllowed

    try:
        Path(output).write_text(click.unstyle("\n".join(lines)) + "\n", "utf-8")
    except OSError as error:
        raise NotAllowed(f"cannot write {output}: {error.strerror}", hint="-o FILE") from error
    print_message(f"wrote {output}")
