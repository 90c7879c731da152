"""`clew trace`: show where a file came from, or what was made from it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option, target_argument, web_option
from clew.cli.output import (
    format_count,
    print_bytes,
    print_json,
    print_line,
    print_message,
    select_fields,
)

if TYPE_CHECKING:
    from clew.documents.lineage.lineage import Lineage

depth_option = click.option(
    "--depth", metavar="N", type=click.IntRange(min=1), help="Follow at most N processes."
)
all_option = click.option(
    "--all", "everything", is_flag=True, help="Include files of installed packages."
)
as_of_option = click.option(
    "--as-of", metavar="TIME", help="Names as they were, and nothing later: 2h, 2026-11-17T09:30."
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
@as_of_option
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
    as_of: str | None,
    as_json: bool,
    output: str | None,
) -> None:
    """Show the lineage of TARGET as a tree, across executions, back to the sources.

    TARGET is a file (PATH as it is now, e2:PATH as an execution left it), a process (e2.p3) or
    an execution (e2). "changed outside" marks a file that was changed after the last recorded
    process wrote it.

    In a cluster, TARGET is also a file on a claim (pvc://ns/claim/path), an object
    (s3://bucket/key), a Pod (pod/ns/name), an image (image@sha256:…), a ConfigMap
    (configmap/ns/name) or a package (pkg:…). A dotted line that ends with "inferred" was concluded
    from times or from a volume as a whole, not observed.
    """
    if up and down:
        raise click.UsageError("--up and --down exclude each other: trace twice")
    if dot + html + as_json > 1:
        raise click.UsageError("--json, --dot and --html exclude each other")
    if web and (dot or html or output or as_of):
        raise click.UsageError("--web excludes --dot, --html, --as-of and -o")
    import clew
    from clew.cli.times import parse_time

    with clew.open() as project:
        found = project.lineage(
            target,
            direction="down" if down else "up",
            depth=depth,
            everything=everything,
            as_of=parse_time(as_of, option="--as-of"),
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
    for remark in _list_remarks(target, found):
        print_message(remark)


def _list_remarks(target: str, found: Lineage) -> Iterator[str]:
    """Facts of a lineage that its drawing does not show."""
    if found.truncated:
        yield "the lineage is truncated: limit it with --depth, or trace a file in it"
    if found.withheld:
        yield f"{format_count(found.withheld, 'node')} of other namespaces: you may not read them"
    first = next((node for node in found.nodes if node.id == found.target), found.nodes[0])
    if first.kind == "volume" and first.label != target:
        yield f"no witness saw who accessed {target}: this is the lineage of the whole volume"
    if not found.edges and first.changed_outside:
        yield f"its recorded versions: clew restore --list {target}"


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
