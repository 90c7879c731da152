"""`clew list`: every execution on a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, command_line, duration, print_json, print_table, remark, when


@click.command("list", short_help=COMMANDS["list"], epilog="Example: clew list --json | jq '.[-1]'")
@click.option("--tree", is_flag=True, help="Show which came from which, and how.")
@json_option
def command(tree: bool, as_json: bool) -> None:
    """List the executions, oldest first: id, name, state, when, how long, command.

    With --tree those that came from another stand below it: repetitions, runs with other
    parameters, and commits of changed files.
    """
    import clew

    with clew.open() as project:
        executions = [execution.as_json() for execution in project.executions()]
        unrecovered = project.unrecovered
    if as_json:
        print_json(families(executions) if tree else executions)
    elif not executions:
        remark("nothing is recorded yet; begin with: clew exec -- COMMAND")
    elif tree:
        columns = ("execution", "name", "state", "started", "took", "how", "command")
        print_table(columns, branches(families(executions)))
    else:
        headings = ("id", "name", "state", "started", "took", "command")
        print_table(headings, map(row, executions))
    ids = {execution["uid"]: execution["id"] for execution in executions}
    for uid, why in unrecovered.items():
        remark(f"clew: warning: the record of {ids.get(uid, uid)} is not complete: {clean(why)}")


def row(execution: dict[str, Any]) -> tuple[str, ...]:
    return (
        execution["id"],
        execution["name"] or "",
        state(execution) + (" (made elsewhere)" if execution["made_elsewhere"] else ""),
        when(execution["started"]),
        duration(execution["seconds"]),
        command_line(execution["command"]),
    )


def state(execution: dict[str, Any]) -> str:
    """The state, and for a failure how: `failed 2`, `failed signal 9`."""
    if execution["state"] != "failed":
        return str(execution["state"])
    if execution["signal"]:
        return f"failed signal {execution['signal']}"
    return f"failed {execution['status']}"


def families(executions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that came from no other, each with its `children`, and how these came from it."""
    known = {one["id"]: {**one, "how": None, "children": []} for one in executions}
    roots = []
    for one in known.values():
        parent = known.get(one["parent"])
        if parent is None:
            roots.append(one)
        else:
            one["how"] = _how(one, parent)
            parent["children"].append(one)
    return roots


def _how(one: dict[str, Any], parent: dict[str, Any]) -> str:
    if one["kind"] == "repetition":
        return "repetition"
    return "commit" if one["command"] == parent["command"] else "parameters"


def branches(
    found: list[dict[str, Any]], lead: str = "", *, top: bool = True
) -> Iterator[tuple[str, ...]]:
    """A row for each, with the lines of the tree before its id."""
    for one in found:
        last = one is found[-1]
        mark = "" if top else "└─ " if last else "├─ "
        _, *rest, words = row(one)
        yield (f"{lead}{mark}{one['id']}", *rest, one["how"] or "", words)
        below = "" if top else lead + ("   " if last else "│  ")
        yield from branches(one["children"], below, top=False)
