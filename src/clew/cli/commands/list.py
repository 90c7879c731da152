"""`clew list`: list the executions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import (
    escape,
    format_command,
    format_duration,
    format_time,
    print_json,
    print_message,
    print_table,
)


@click.command("list", short_help=COMMANDS["list"], epilog="Example: clew list --json | jq '.[-1]'")
@click.option(
    "--tree", is_flag=True, help="Show which execution each one is derived from, and how."
)
@json_option
def command(tree: bool, as_json: bool) -> None:
    """List the executions, oldest first: id, name, state, when, how long, command.

    With --tree, derived executions are shown below their origin: repetitions, executions with
    other parameters, and commits.
    """
    import clew

    with clew.open() as project:
        executions = [execution.as_json() for execution in project.executions()]
        unrecovered = project.unrecovered
    if as_json:
        print_json(build_tree(executions) if tree else executions)
    elif not executions:
        print_message("no executions recorded yet; start with: clew exec -- COMMAND")
    elif tree:
        columns = ("execution", "name", "state", "started", "took", "how", "command")
        print_table(columns, tree_rows(build_tree(executions)))
    else:
        headings = ("id", "name", "state", "started", "took", "command")
        print_table(headings, map(format_row, executions))
    ids = {execution["uid"]: execution["id"] for execution in executions}
    for uid, why in unrecovered.items():
        print_message(
            f"clew: warning: the record of {ids.get(uid, uid)} is incomplete: {escape(why)}"
        )


def format_row(execution: dict[str, Any]) -> tuple[str, ...]:
    return (
        execution["id"],
        execution["name"] or "",
        format_state(execution) + _format_origin(execution),
        format_time(execution["started"]),
        format_duration(execution["seconds"]),
        format_command(execution["command"]),
    )


def _format_origin(execution: dict[str, Any]) -> str:
    if not execution["made_elsewhere"]:
        return ""
    signer = execution["signed_by"]
    return f" (made elsewhere, signed by {signer})" if signer else " (made elsewhere)"


def format_state(execution: dict[str, Any]) -> str:
    """The state, with the cause of a failure: `failed 2`, `failed signal 9`."""
    if execution["state"] != "failed":
        return str(execution["state"])
    if execution["signal"]:
        return f"failed signal {execution['signal']}"
    return f"failed {execution['status']}"


def build_tree(executions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The executions without a parent, with those derived from them as `children`."""
    nodes = {item["id"]: {**item, "how": None, "children": []} for item in executions}
    roots = []
    for node in nodes.values():
        parent = nodes.get(node["parent"])
        if parent is None:
            roots.append(node)
        else:
            node["how"] = _relation(node, parent)
            parent["children"].append(node)
    return roots


def _relation(execution: dict[str, Any], parent: dict[str, Any]) -> str:
    if execution["kind"] == "repetition":
        return "repetition"
    return "commit" if execution["command"] == parent["command"] else "parameters"


def tree_rows(
    nodes: list[dict[str, Any]], lead: str = "", *, top: bool = True
) -> Iterator[tuple[str, ...]]:
    """One row per execution, with the lines of the tree before its id."""
    for node in nodes:
        last = node is nodes[-1]
        mark = "" if top else "└─ " if last else "├─ "
        _, *rest, command_line = format_row(node)
        yield (f"{lead}{mark}{node['id']}", *rest, node["how"] or "", command_line)
        below = "" if top else lead + ("   " if last else "│  ")
        yield from tree_rows(node["children"], below, top=False)
