"""`clew pipeline show`: one run, its parameters and its tasks."""

from __future__ import annotations

import json
from typing import Any

import click

from clew.cli.options import json_option
from clew.cli.output import clean, duration, print_json, print_table, say


@click.command("show", short_help="Show a run.", epilog="Example: clew pipeline show r1")
@click.argument("run", metavar="RUN")
@json_option
def command(run: str, as_json: bool) -> None:
    """Show a run: its parameters, what it gave, and how each of its tasks went."""
    shown(run, as_json)


def shown(run: str, as_json: bool) -> None:
    import clew

    with clew.open() as project:
        document = project.pipelines.show(run)
    if as_json:
        print_json(document)
        return
    took = f" in {duration(document['seconds'])}" if document["seconds"] is not None else ""
    say(f"{document['id']}  {clean(document['name'] or '')}  {document['state']}{took}")
    if document["error"]:
        say(f"  {clean(document['error'])}")
    for title, values in (("inputs", document["inputs"]), ("outputs", document["outputs"])):
        for name, value in values.items():
            say(f"  {title[:-1]} {clean(name)} = {_short(value)}")
    print_table(("task", "state", "took", "execution", "what"), map(_row, document["tasks"]))


def _row(task: dict[str, Any]) -> tuple[str, ...]:
    made = [f"{name}={_short(value)}" for name, value in task["outputs"].items()]
    made += [f"{task['id']}:{name}" for name in task["artifacts"]]
    done = task["state"] in ("succeeded", "reused")
    reason = task["error"] or (None if done else task["why"])
    made += [f"from {task['reused_from']}"] if task["reused_from"] else []
    return (
        task["name"],
        task["state"],
        duration(task["seconds"]) if task["execution"] else "",
        task["execution"] or "",
        reason or "  ".join(made),
    )


def _short(value: Any) -> str:
    text = clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:59] + "…"
