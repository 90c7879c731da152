"""`clew list`: list the executions."""

import sys
from collections.abc import Iterator, Sequence

import click
import msgspec
from msgspec.structs import asdict, replace

from clew.cli.completion.candidates import complete_filters
from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option
from clew.cli.output import (
    escape,
    format_command,
    format_count,
    format_duration,
    format_time,
    print_json,
    print_message,
    print_table,
)
from clew.cli.times import parse_time
from clew.documents.executions.execution_list import Change, Execution, ExecutionNode

_SHOWN = 20
"""How many executions a terminal shows unless the user says otherwise."""
_LAUNCHER = "/clew/pipelines/tasks/launcher.py"
_DEEPEST = 100
"""Levels of a tree."""


@click.command(
    "list",
    short_help=COMMANDS["list"],
    epilog="Examples: clew list --since today | clew list state:failed train.py | "
    "clew list --json | jq '.[0]'",
)
@click.argument("filters", metavar="[FILTER]...", nargs=-1, shell_complete=complete_filters)
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), help="Show the newest N executions."
)
@click.option("--since", metavar="TIME", help="Show executions since 2h, 3d, today or 2026-11-17.")
@click.option(
    "--tree", is_flag=True, help="Show which execution each one is derived from, and what differs."
)
@click.option("--workers", is_flag=True, help="Include the workers of pipeline runs.")
@pager_option
@json_option
def command(
    filters: tuple[str, ...],
    limit: int | None,
    since: str | None,
    tree: bool,
    workers: bool,
    as_json: bool,
) -> None:
    """List the executions, newest first: id, name, state, when, how long, command.

    A FILTER is state:failed (or running, done, broken), name:TEXT, tag:NAME, made:elsewhere (or
    made:here), or any text of the command, the name, a tag or a note. Executions must match all
    filters. A terminal shows the newest 20 unless --limit is given.
    """
    import clew

    if limit is None and sys.stdout.isatty() and not as_json:
        limit = _SHOWN
    with clew.open() as project:
        found = project.select(
            filters,
            since=parse_time(since, option="--since"),
            limit=None if tree else limit,
            workers=workers or as_json,
        )
        unrecovered = project.unrecovered
    executions = found.executions
    more = found.more
    roots = build_tree(executions) if tree else []
    if tree and limit:
        roots, more = roots[:limit], len(roots[limit:])
    if as_json:
        print_json(msgspec.to_builtins(roots if tree else executions))
    elif not executions and (filters or since):
        print_message("no execution matches; clew list shows all")
    elif not executions:
        print_message("no executions recorded yet; start with: clew exec -- COMMAND")
    elif tree:
        columns = ("execution", "name", "state", "started", "took", "tags", "how", "command")
        print_columns(columns, list(_tree_rows(roots)), without=("started",))
    else:
        headings = ("id", "name", "state", "started", "took", "tags", "command")
        print_columns(headings, list(map(format_row, executions)))
    if more and not as_json:
        print_message(f"{format_count(more, 'older execution')} not shown: use --limit N")
    ids: dict[str, str | None] = {execution.uid: execution.id for execution in executions}
    for uid, why in unrecovered.items():
        print_message(
            f"clew: warning: the record of {ids.get(uid, uid)} is incomplete: {escape(why)}"
        )


def format_row(execution: Execution) -> tuple[str, ...]:
    return (
        execution.id or "",
        format_name(execution),
        format_state(execution.state, execution.status, execution.signal)
        + _format_origin(execution),
        format_time(execution.started),
        format_duration(execution.seconds),
        " ".join(execution.tags),
        format_program(execution),
    )


def format_name(execution: Execution) -> str:
    """Its name, or the task that stands for it: what can be typed in place of the id."""
    return execution.name or (None if execution.made_elsewhere else execution.task) or ""


def format_program(execution: Execution) -> str:
    """The command; of a Python component only its function, not how Clew calls it."""
    words = execution.command
    if len(words) == 4 and words[1].endswith(_LAUNCHER):
        return escape(f"{words[3]}()")
    return format_command(words)


def _format_origin(execution: Execution) -> str:
    if not execution.made_elsewhere:
        return ""
    signer = execution.signed_by
    return f" (made elsewhere, signed by {signer})" if signer else " (made elsewhere)"


def format_state(state: str, status: int | None, signal: int | None) -> str:
    """The state, with the cause of a failure: `failed 2`, `failed signal 9`."""
    if state != "failed":
        return state
    return f"failed signal {signal}" if signal else f"failed {status}"


def build_tree(executions: Sequence[Execution]) -> list[ExecutionNode]:
    """The executions whose parents are not among them, newest first; those derived from them are
    their `children`, oldest first. Below the deepest level a new tree begins: pulled records may
    name each other without end, and JSON cannot be nested so far."""
    from clew.replay.repeat.parameters import list_changes

    nodes: dict[str | None, ExecutionNode] = {}
    levels: dict[str | None, int] = {}
    roots = []
    for execution in reversed(executions):
        level = levels.get(execution.parent, 0)
        parent = nodes.get(execution.parent) if level < _DEEPEST else None
        node = ExecutionNode(**asdict(execution), children=[])
        if parent is None:
            roots.append(node)
        else:
            changes = list_changes(parent.command, execution.command)
            how = "parameters" if changes else "commit"
            if execution.kind == "repetition":
                how, changes = "repetition", []
            node = replace(node, how=how, changes=changes)
            parent.children.append(node)
        nodes[execution.id] = node
        levels[execution.id] = 1 if parent is None else level + 1
    return roots[::-1]


def _tree_rows(
    nodes: Sequence[ExecutionNode], lead: str = "", *, top: bool = True
) -> Iterator[tuple[str, ...]]:
    """One row per execution, with the lines of the tree before its id."""
    for node in nodes:
        last = node is nodes[-1]
        mark = "" if top else "└─ " if last else "├─ "
        _, *rest, program = format_row(node)
        yield (f"{lead}{mark}{node.id}", *rest, _format_relation(node), program)
        below = "" if top else lead + ("   " if last else "│  ")
        yield from _tree_rows(node.children, below, top=False)


def _format_relation(node: ExecutionNode) -> str:
    if node.how != "parameters":
        return node.how or ""
    return ", ".join(map(format_change, node.changes))


def format_change(change: Change) -> str:
    """`--rate 0.1 → 0.3`, `with --fast`, `without --fast`."""
    if change.a is None:
        return f"with {change.name} {change.b}".rstrip()
    if change.b is None:
        return f"without {change.name} {change.a}".rstrip()
    return f"{change.name} {change.a} → {change.b}"


def print_columns(
    headings: Sequence[str], rows: list[tuple[str, ...]], *, without: Sequence[str] = ()
) -> None:
    """Print a table. In a pipe its columns are always the same; a terminal, which is narrow, shows
    neither empty columns nor those in `without`."""
    if sys.stdout.isatty():
        used = [
            n
            for n, cells in enumerate(zip(*rows, strict=True))
            if any(cells) and headings[n] not in without
        ]
        headings, rows = [headings[n] for n in used], [tuple(row[n] for n in used) for row in rows]
    print_table(headings, rows)
