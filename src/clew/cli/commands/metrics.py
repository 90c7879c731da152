"""`clew metrics`: compare executions and runs by their parameters and metrics."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clew.cli.completion.candidates import complete_executions
from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option
from clew.cli.output import print_json, print_line, print_message, print_table
from clew.errors import NotFound, UsageError

if TYPE_CHECKING:
    from clew.api.metric_collection import Measured
    from clew.cli.plot import Points


@click.command(
    "metrics", short_help=COMMANDS["metrics"], epilog="Example: clew metrics --sort accuracy --diff"
)
@click.argument("ids", metavar="[ID]...", nargs=-1, shell_complete=complete_executions)
@click.option("--sort", metavar="NAME", help="Sort by a parameter or metric, smallest first.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@click.option("--diff", is_flag=True, help="Show only the columns that differ.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Include only the N newest.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option("--plot", metavar="METRIC", help="Plot one metric.")
@click.option("--against", metavar="NAME", help="Plot over a parameter or another metric.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the plot as SVG.")
@json_option
@pager_option
def command(
    ids: tuple[str, ...],
    sort: str | None,
    reverse: bool,
    diff: bool,
    limit: int,
    as_csv: bool,
    plot: str | None,
    against: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Compare executions and pipeline runs: a row each, with parameters and metrics.

    Metrics are the numbers in files called metrics.json, TensorBoard scalars (the last value), and
    what pipeline tasks log to Output[Metrics]. Parameters are options of the command, or inputs of
    the run. Without IDs, the newest executions and runs that have metrics are shown.

    With --plot, a metric is drawn as bars or, with -o FILE.svg, as a picture: over the steps
    of TensorBoard, over --against, or in the order of the rows.
    """
    if (against or output) and not plot:
        raise UsageError("--against and -o need --plot METRIC", hint="clew metrics --help")
    import clew
    from clew.api.metric_collection import collect_metrics

    with clew.open() as project:
        rows = collect_metrics(project, ids, limit=limit)
    if sort:
        _check_name(sort, rows)
        rows.sort(key=lambda row: _sort_key(_value(row, sort)))
    if reverse:
        rows.reverse()
    if as_json:
        print_json([row.as_json() for row in rows])
    elif not rows:
        print_message("no metrics yet: write numbers to a file metrics.json in a recorded command")
    elif plot:
        _plot(rows, plot, against, output)
    else:
        headings, cells = _table(rows, diff=diff)
        if as_csv:
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([headings, *cells])
            print_line(text.getvalue().rstrip("\n"))
        else:
            print_table(headings, cells)


def _table(rows: list[Measured], *, diff: bool) -> tuple[list[str], list[list[str]]]:
    """The headings and the cells. A name that is both a parameter and a metric has two columns."""
    columns = [
        (kind, name)
        for kind in ("parameters", "metrics")
        for name in dict.fromkeys(name for row in rows for name in getattr(row, kind))
    ]
    if diff:
        columns = [(k, n) for k, n in columns if len({str(getattr(r, k).get(n)) for r in rows}) > 1]
    headings = ["id", "name", *(name for _, name in columns)]
    cells = [
        [row.id, row.name or "", *(_format(getattr(row, kind).get(name)) for kind, name in columns)]
        for row in rows
    ]
    return headings, cells


def _format(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _value(row: Measured, name: str) -> Any:
    return row.metrics.get(name, row.parameters.get(name))


def _sort_key(value: Any) -> tuple[int, float, str]:
    """Numbers first, then text, then what is missing."""
    try:
        return 0, float(value), ""
    except (TypeError, ValueError):
        return (2, 0.0, "") if value is None else (1, 0.0, str(value))


def _check_name(name: str, rows: list[Measured]) -> None:
    known = dict.fromkeys(n for row in rows for n in (*row.metrics, *row.parameters))
    if rows and name not in known:
        raise NotFound(f"no parameter or metric {name}", hint=f"there are {', '.join(known)}")


def _plot(rows: list[Measured], metric: str, against: str | None, output: Path | None) -> None:
    from clew.cli.plot import format_bars, render_svg

    for name in filter(None, (metric, against)):
        _check_name(name, rows)
    rows = [row for row in rows if metric in row.metrics]
    if against:
        rows.sort(key=lambda row: _sort_key(_value(row, against)))
    if output is None:
        bars = []
        for row in rows:
            label = row.name or row.id
            if against:
                label = f"{row.id}  {against}={_format(_value(row, against))}"
            bars.append((label, row.metrics[metric]))
        print_line(format_bars(bars))
        return
    x_label = "step"
    lines: dict[str, Points] = {
        row.name or row.id: row.series[metric] for row in rows if metric in row.series
    }
    if against or not lines:
        x_label = against or "row"
        lines = {metric: [(_x(row, against, n), row.metrics[metric]) for n, row in enumerate(rows)]}
    output.write_text(render_svg(lines, title=metric, x_label=x_label))
    print_line(f"wrote {output}")


def _x(row: Measured, against: str | None, position: int) -> float:
    """The x value of a row: its number, or its position if it has none."""
    kind, number, _ = _sort_key(_value(row, against)) if against else (1, 0.0, "")
    return number if kind == 0 else position
