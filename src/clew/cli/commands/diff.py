"""`clew diff`: in what two executions differ, and where that began."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from clew.api import pipeline_artifacts as artifacts
from clew.api.pipeline_artifacts import is_run
from clew.cli.main import COMMANDS
from clew.cli.options import complete_executions, json_option
from clew.cli.output import clean, command_line, print_json, print_table, say, strong

DIFFERENT = 3
_MOST = 20
"""Lines of one part on a terminal; --json has all."""


@click.command(
    "diff",
    short_help=COMMANDS["diff"],
    epilog="Examples: clew diff e1 e2 | clew diff e1 e2 --json | clew diff --rules",
)
@click.argument("a", metavar="A", required=False, shell_complete=complete_executions)
@click.argument("b", metavar="B", required=False, shell_complete=complete_executions)
@click.option(
    "--confirm", is_flag=True, help="Try which causes can be confirmed (a minute at most)."
)
@click.option("--rules", is_flag=True, help="Show which differences do not matter, and where.")
@json_option
def command(a: str | None, b: str | None, confirm: bool, rules: bool, as_json: bool) -> int:
    """Compare execution B with execution A: command, environment, packages, hardware, processes,
    inputs and outputs, and which process diverged first; or run B with run A, task by task; or two
    artifacts of runs (r1/train:model), file by file.

    Only what differs is shown, small text files line by line. With --confirm the process that
    diverged first is run again in isolation with one possible cause after the other pinned.
    Exits with 3 when they differ.
    """
    import clew

    if rules:
        if a is not None:
            raise click.UsageError("--rules takes no execution")
        with clew.open() as project:
            _show_rules(project.rules(), as_json)
        return 0
    if a is None or b is None:
        raise click.UsageError("name two executions: clew diff A B")
    with clew.open() as project:
        if is_run(a) and is_run(b):
            return _runs(project.pipelines.diff(a, b), as_json)
        if artifacts.is_artifact(a) and artifacts.is_artifact(b):
            return _artifacts(artifacts.diff(project, a, b), as_json)
        document = project.diff(a, b, confirm=confirm)
    if as_json:
        print_json(document)
    else:
        for line in summary(document):
            say(line)
    return DIFFERENT if differs(document) else 0


def _runs(document: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(document)
    else:
        say(f"{document['a']} → {document['b']}")
        for part in ("inputs", "outputs"):
            for name, (then, now) in document[part].items():
                say(f"  {part[:-1]} {clean(name)}: {_value(then)} → {_value(now)}")
        for task in document["tasks"]:
            then, now = task["state"]
            state = f"  {then} → {now}" if then != now else ""
            say(f"  {clean(task['name'])}{state}")
            changes = {**task.get("parameters", {}), **task["made"]}
            for name, (before, after) in changes.items():
                say(f"    {clean(name)}: {_value(before)} → {_value(after)}")
        if document["divergence"]:
            say(f"first to differ though it was given the same: {clean(document['divergence'])}")
    return DIFFERENT if document["tasks"] or document["outputs"] else 0


def _artifacts(document: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(document)
    elif document["files"]:
        say(f"{document['a']} → {document['b']}")
        for line in _files(document["files"]):
            say(f"  {line}")
    else:
        say(f"{document['a']} and {document['b']} do not differ")
    return DIFFERENT if document["files"] else 0


def _value(value: Any) -> str:
    if isinstance(value, list) and all(str(one).startswith("blake3:") for one in value):
        return ", ".join(one[:15] for one in value)  # what files hold
    text = clean(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:59] + "…"


def _show_rules(rules: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rules)
        return
    rows = ((rule["name"], " ".join(rule["paths"]), rule["what"]) for rule in rules)
    print_table(("name", "paths", "what is overlooked"), rows)


def differs(document: Mapping[str, Any]) -> bool:
    parts = ("command", "environment", "packages", "hardware", "processes", "inputs", "outputs")
    return any(document[part] for part in parts)


def summary(document: Mapping[str, Any]) -> Iterator[str]:
    a, b = document["a"], document["b"]
    if not differs(document):
        yield f"{a} and {b} do not differ"
        return
    yield strong(f"{a} → {b}") + f"  outputs {document['verdict']}"
    if document["command"]:
        yield from _part("Command", _change("", document["command"], command_line))
    yield from _part("Environment", _values(document["environment"]))
    yield from _part("Packages", _packages(document["packages"]))
    yield from _part("Hardware", _values(document["hardware"]))
    yield from _part("Processes", _processes(document["processes"]))
    yield from _part("Inputs", _files(document["inputs"]))
    yield from _part("Outputs", _files(document["outputs"]))
    if document["divergence"]:
        yield from _part("First to diverge", divergence(document["divergence"]))


def _part(title: str, lines: Iterator[str]) -> Iterator[str]:
    told = list(lines)
    if told:
        yield ""
        yield strong(title)
        yield from (f"  {line}" for line in told)


def _values(values: Mapping[str, Any]) -> Iterator[str]:
    for name, two in values.items():
        if name != "variables":
            yield from _change(name, two, _shown)
    for name, two in values.get("variables", {}).items():
        yield from _change(name, two, _shown)


def _shown(value: Any) -> str:
    text = "" if value is None else clean(str(value))
    return text if len(text) <= 100 else text[:99] + "…"


def _change(name: str, two: Mapping[str, Any], shown: Any) -> Iterator[str]:
    label = f"{clean(name)}: " if name else ""
    for sign, value in (("-", two["a"]), ("+", two["b"])):
        if value is not None:
            yield f"{sign} {label}{shown(value)}"


def _packages(packages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in packages[:_MOST]:
        before, after = one["a"] or "none", one["b"] or "none"
        yield f"{one['manager']} {clean(one['name'])}  {clean(before)} → {clean(after)}"
    yield from _rest(packages)


def _processes(processes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in processes[:_MOST]:
        sign = {"missing": "-", "extra": "+", "changed": "~"}[one["kind"]]
        ids = " → ".join(part for part in (one["a"], one["b"]) if part)
        yield f"{sign} {ids}  {command_line(one['command'])}"
        for name, two in one.get("changes", {}).items():
            shown = command_line if name == "command" else _shown
            yield from (f"    {line}" for line in _change(name, two, shown))
    yield from _rest(processes)


def _files(files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in files[:_MOST]:
        rule = f" by the rule {clean(one['rule'])}" if one.get("rule") else ""
        told = f" {one['a']} → {one['b']}" if one["kind"] in ("mode", "status") else ""
        yield f"{one['kind']:<10}  {clean(one['path'])}{told}{rule}"
        for line in one.get("lines", ())[2:]:  # the path is told already
            yield f"    {clean(line)}"
    yield from _rest(files)


def _rest(things: Sequence[Any]) -> Iterator[str]:
    if len(things) > _MOST:
        yield f"… and {len(things) - _MOST} more (with --json)"


def divergence(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['of']} → {found['process']}  {command_line(found['command'])}"
    for cause in found["causes"]:
        yield f"{cause['confidence']:<9}  {cause['cause']}: {clean(cause['detail'])}"
