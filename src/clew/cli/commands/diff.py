"""`clew diff`: compare two executions, and find the process that diverged first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from clew.api import pipeline_artifacts as artifacts
from clew.api.pipeline_artifacts import is_run
from clew.cli.completion.candidates import complete_executions
from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option
from clew.cli.output import bold, escape, format_command, print_json, print_line, print_table

if TYPE_CHECKING:
    from clew.documents.comparisons.differences import (
        ArtifactDiff,
        Change,
        Difference,
        Divergence,
        ExecutionDiff,
        ImageChange,
        PackageChange,
        PodDiff,
        ProcessChange,
        RunDiff,
    )
    from clew.documents.project.maintenance import Rule

DIFFERENT = 3
_MAX_LINES = 20
"""Lines per section; --json prints all."""


@click.command(
    "diff",
    short_help=COMMANDS["diff"],
    epilog="Examples: clew diff e1 e2 | clew diff e1 e2 --json | clew diff --rules",
)
@click.argument("a", metavar="A", required=False, shell_complete=complete_executions)
@click.argument("b", metavar="B", required=False, shell_complete=complete_executions)
@click.option(
    "--confirm", is_flag=True, help="Try to confirm causes by experiments (for at most a minute)."
)
@click.option("--rules", is_flag=True, help="Show the rules for differences that are ignored.")
@json_option
@pager_option
def command(a: str | None, b: str | None, confirm: bool, rules: bool, as_json: bool) -> int:
    """Compare execution B with execution A: command, environment, packages, hardware, processes,
    inputs and outputs, and which process diverged first. A and B may also be pipeline runs, which
    are compared task by task, artifacts of runs (r1/train:model), file by file, or Pods
    (pod/ns/name): image digests, commands, variables, ConfigMaps, inputs, outputs and nodes.

    Only differences are shown; small text files are compared line by line. With --confirm the
    process that diverged first is run again in isolation, with one possible cause at a time held
    constant. The exit status is 3 when they differ.
    """
    import clew

    if rules:
        if a is not None:
            raise click.UsageError("--rules takes no execution")
        with clew.open() as project:
            _print_rules(project.rules(), as_json)
        return 0
    if a is None or b is None:
        raise click.UsageError("two executions are needed: clew diff A B")
    with clew.open() as project:
        if is_run(a) and is_run(b):
            return _print_run_diff(project.pipelines.diff(a, b), as_json)
        if artifacts.is_artifact(a) and artifacts.is_artifact(b):
            return _print_artifact_diff(artifacts.diff(project, a, b), as_json)
        document = project.diff(a, b, confirm=confirm)
    if as_json:
        print_json(document.as_json())
    else:
        from clew.documents.comparisons.differences import PodDiff

        lines = summarize_pods(document) if isinstance(document, PodDiff) else summarize(document)
        for line in lines:
            print_line(line)
    return DIFFERENT if document.differs else 0


def _print_run_diff(document: RunDiff, as_json: bool) -> int:
    if as_json:
        print_json(document.as_json())
    else:
        print_line(f"{document.a} → {document.b}")
        for part, values in (("input", document.inputs), ("output", document.outputs)):
            for name, (then, now) in values.items():
                print_line(f"  {part} {escape(name)}: {_format_json(then)} → {_format_json(now)}")
        for task in document.tasks:
            then, now = task.state
            state = f"  {then} → {now}" if then != now else ""
            print_line(f"  {escape(task.name)}{state}")
            changes = {**(task.parameters or {}), **task.made}
            for name, (before, after) in changes.items():
                print_line(f"    {escape(name)}: {_format_json(before)} → {_format_json(after)}")
        if document.divergence:
            first = escape(document.divergence)
            print_line(f"first task with different outputs from the same inputs: {first}")
    return DIFFERENT if document.tasks or document.outputs else 0


def _print_artifact_diff(document: ArtifactDiff, as_json: bool) -> int:
    if as_json:
        print_json(document.as_json())
    elif document.files:
        print_line(f"{document.a} → {document.b}")
        for line in _file_lines(document.files):
            print_line(f"  {line}")
    else:
        print_line(f"{document.a} and {document.b} do not differ")
    return DIFFERENT if document.files else 0


def _format_json(value: Any) -> str:
    if isinstance(value, list) and all(str(item).startswith("blake3:") for item in value):
        return ", ".join(digest[:15] for digest in value)
    text = escape(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:59] + "…"


def _print_rules(rules: Sequence[Rule], as_json: bool) -> None:
    if as_json:
        print_json([rule.as_json() for rule in rules])
        return
    rows = ((rule.name, " ".join(rule.paths), rule.what) for rule in rules)
    print_table(("name", "paths", "what is ignored"), rows)


def summarize_pods(diff: PodDiff) -> Iterator[str]:
    a, b = (f"pod {escape(name)}" for name in diff.pods)
    if not diff.differs:
        yield f"{a} and {b} do not differ"
        return
    yield bold(f"{a} → {b}") + f"  outputs {diff.verdict}"
    yield from _section("Images", _image_lines(diff.images))
    yield from _section("Command", _command_lines(diff.command))
    for container, changes in diff.environment.items():
        yield from _section(f"Environment of {escape(container)}", _named_changes(changes))
    yield from _section("ConfigMaps and Secrets", _file_lines(diff.config_maps))
    yield from _section("Node", _named_changes(diff.hardware))
    yield from _section("Inputs", _file_lines(diff.inputs))
    yield from _section("Outputs", _file_lines(diff.outputs))


def _image_lines(images: Sequence[ImageChange]) -> Iterator[str]:
    for image in images:
        for sign, digest, name in (("-", image.a, image.name_a), ("+", image.b, image.name_b)):
            if digest or name:
                words = " ".join(escape(word) for word in (name, digest) if word)
                yield f"{sign} {escape(image.container)}: {words}"


def _command_lines(commands: Mapping[str, Change]) -> Iterator[str]:
    for container, change in commands.items():
        yield from _change_lines(container, change.as_json(), format_command)


def _named_changes(changes: Mapping[str, Change]) -> Iterator[str]:
    for name, change in changes.items():
        yield from _change_lines(name, change.as_json(), _format_value)


def summarize(diff: ExecutionDiff) -> Iterator[str]:
    if not diff.differs:
        yield f"{diff.a} and {diff.b} do not differ"
        return
    yield bold(f"{diff.a} → {diff.b}") + f"  outputs {diff.verdict}"
    if diff.command:
        yield from _section("Command", _change_lines("", diff.command.as_json(), format_command))
    yield from _section("Environment", _value_lines(diff.environment))
    yield from _section("Packages", _package_lines(diff.packages))
    yield from _section("Hardware", _value_lines(diff.hardware))
    yield from _section("Processes", _process_lines(diff.processes))
    yield from _section("Inputs", _file_lines(diff.inputs))
    yield from _section("Outputs", _file_lines(diff.outputs))
    if diff.divergence:
        yield from _section("First to diverge", divergence_lines(diff.divergence))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    if lines:
        yield ""
        yield bold(title)
        yield from (f"  {line}" for line in lines)


def _value_lines(values: Mapping[str, Any]) -> Iterator[str]:
    for name, change in values.items():
        if name != "variables":
            yield from _change_lines(name, change, _format_value)
    for name, change in values.get("variables", {}).items():
        yield from _change_lines(name, change, _format_value)


def _format_value(value: Any) -> str:
    text = "" if value is None else escape(str(value))
    return text if len(text) <= 100 else text[:99] + "…"


def _change_lines(
    name: str, change: Mapping[str, Any], format_: Callable[[Any], str]
) -> Iterator[str]:
    label = f"{escape(name)}: " if name else ""
    for sign, value in (("-", change["a"]), ("+", change["b"])):
        if value is not None:
            yield f"{sign} {label}{format_(value)}"


def _package_lines(packages: Sequence[PackageChange]) -> Iterator[str]:
    for package in packages[:_MAX_LINES]:
        before, after = package.a or "none", package.b or "none"
        yield f"{package.manager} {escape(package.name)}  {escape(before)} → {escape(after)}"
    yield from _omitted_line(packages)


def _process_lines(processes: Sequence[ProcessChange]) -> Iterator[str]:
    for process in processes[:_MAX_LINES]:
        sign = {"missing": "-", "extra": "+", "changed": "~"}[process.kind]
        ids = " → ".join(part for part in (process.a, process.b) if part)
        yield f"{sign} {ids}  {format_command(process.command)}"
        for name, change in (process.changes or {}).items():
            format_ = format_command if name == "command" else _format_value
            yield from (f"    {line}" for line in _change_lines(name, change.as_json(), format_))
    yield from _omitted_line(processes)


def _file_lines(files: Sequence[Difference]) -> Iterator[str]:
    for file in files[:_MAX_LINES]:
        rule = f" by the rule {escape(file.rule)}" if file.rule else ""
        change = f" {file.a} → {file.b}" if file.kind in ("mode", "status") else ""
        yield f"{file.kind:<10}  {escape(file.path)}{change}{rule}"
        for line in (file.lines or ())[2:]:  # without the two lines that name the file
            yield f"    {escape(line)}"
    yield from _omitted_line(files)


def _omitted_line(items: Sequence[Any]) -> Iterator[str]:
    if len(items) > _MAX_LINES:
        yield f"… and {len(items) - _MAX_LINES} more (with --json)"


def divergence_lines(divergence: Divergence) -> Iterator[str]:
    process = f"{divergence.of} → {divergence.process}"
    yield f"{process}  {format_command(divergence.command)}"
    for cause in divergence.causes:
        yield f"{cause.confidence:<9}  {cause.cause}: {escape(cause.detail)}"
