"""The summary of an execution: its command, its result, and the user's own files.

Everything that is printed comes from a record, which may be untrusted: all text is escaped.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from clew.cli.commands.list import format_change, format_program, format_state
from clew.cli.commands.note import format_note
from clew.cli.output import (
    bold,
    dim,
    escape,
    format_command,
    format_count,
    format_duration,
    format_size,
    format_time,
)
from clew.documents.executions.detail import ExecutionDetail, Process
from clew.documents.executions.execution_list import Execution
from clew.documents.executions.summary import (
    ExecutionSummary,
    OwnFile,
    OwnFiles,
    Relative,
    Relatives,
)

_MOST_FILES = 8
_MOST_RELATIVES = 5
_MOST_PROCESSES = 8
_MOST_PACKAGES = 10
_MOST_VALUES = 12
_LONGEST_NOTE = 300
_LONGEST_COMMAND = 300


def summary_lines(execution: ExecutionSummary) -> Iterator[str]:
    yield from header_lines(execution)
    yield ""
    for word, value in _fact_lines(execution):
        yield f"  {word:<12}{value}"
    yield from _file_lines("Inputs", execution.own_inputs, execution)
    yield from _file_lines("Outputs", execution.own_outputs, execution)
    yield from _relative_lines("Derived from", execution.derived_from, execution)
    yield from _relative_lines("Derived from it", execution.derived, execution)
    tree = execution.tree
    if 1 < len(tree) <= _MOST_PROCESSES:
        yield from ("", bold("Processes"), *process_lines(tree, longest=_LONGEST_COMMAND))
    yield from gap_lines(execution)
    yield ""
    yield dim(f"more: clew show {escape(execution.id or execution.uid)} --detail | --environment")


def header_lines(execution: Execution) -> Iterator[str]:
    state = format_state(execution.state, execution.status, execution.signal)
    names = (execution.id or execution.uid[:8], execution.name, execution.task)
    yield bold("  ".join(escape(name) for name in names if name)) + f"  {escape(state)}"
    yield format_program(execution)
    took = format_duration(execution.seconds)
    facts = (
        f"in {escape(execution.cwd)}" if execution.cwd else "",
        format_time(execution.started),
        f"took {took}" if took else "",
        f"by {escape(execution.agent)}" if execution.agent else "",
        "made elsewhere" if execution.made_elsewhere else "",
        f"signed by {escape(execution.signed_by)}" if execution.signed_by else "",
    )
    yield dim(" · ".join(fact for fact in facts if fact))
    yield (
        f"{format_count(execution.process_count, 'process', 'processes')}, "
        f"{format_count(execution.input_count, 'input')}, "
        f"{format_count(execution.output_count, 'output')}, "
        f"{format_size(execution.bytes or 0)} ({format_size(execution.new_bytes or 0)} new)"
    )


def _fact_lines(execution: ExecutionSummary) -> Iterator[tuple[str, str]]:
    yield "git", format_git(execution.git)
    if execution.parameters:
        yield (
            "parameters",
            ", ".join(
                escape(f"{name} {value}" if value is not True else name)
                for name, value in execution.parameters.items()
            ),
        )
    if execution.packages:
        shown = execution.packages[:_MOST_PACKAGES]
        names = [escape(f"{one.name} {one.version or ''}".rstrip()) for one in shown]
        more = len(execution.packages) - len(shown)
        yield "packages", ", ".join(names) + (f" and {more} more" if more else "")
    if execution.tags:
        yield "tags", escape(" ".join(execution.tags))
    for note in execution.notes:
        text = format_note(note.key, note.value)
        yield "note", text if len(text) <= _LONGEST_NOTE else text[: _LONGEST_NOTE - 1] + "…"
    if pinned := execution.environment.get("pinned"):
        yield "pinned", _flatten(pinned)
    if redacted := format_redacted(execution):
        yield "redacted", escape(redacted)


def format_git(git: dict[str, Any] | None) -> str:
    if not git or not git.get("commit"):
        return "no commit: it did not run in a Git repository"
    dirty = ", with uncommitted changes" if git.get("dirty") else ""
    return escape(f"{git['commit']}{dirty}")


def _flatten(value: dict[str, Any]) -> str:
    return escape(", ".join(f"{key} {item}" for key, item in value.items() if item is not None))


def _file_lines(title: str, files: OwnFiles, execution: Execution) -> Iterator[str]:
    if not files.total:
        return
    shown = files.files[:_MOST_FILES]
    paths = [escape(shorten(file.path, execution.cwd)) for file in shown]
    width = min(max(map(len, paths)), 60)
    yield from ("", bold(title))
    for file, path in zip(shown, paths, strict=True):
        yield f"  {path:<{width}}  {format_size(file.size):>9}{_format_maker(file)}".rstrip()
    if more := files.total - len(shown):
        yield dim(f"  … {more} more of your own files")


def _format_maker(file: OwnFile) -> str:
    return f"  made by {escape(file.made_by)}" if file.made_by else ""


def _relative_lines(title: str, found: Relatives, execution: Execution) -> Iterator[str]:
    if not found.total:
        return
    shown = found.executions[:_MOST_RELATIVES]
    names = [_name(relative) for relative in shown]
    width = max(map(len, names))
    yield from ("", bold(title))
    for name, relative in zip(names, shown, strict=True):
        yield f"  {name:<{width}}  {_describe_relation(relative, execution)}"
    if more := found.total - len({relative.id for relative in shown}):
        yield dim(f"  … {format_count(more, 'more execution')}")


def _name(relative: Relative) -> str:
    return "  ".join(escape(text) for text in (relative.id, relative.name or relative.task) if text)


def _describe_relation(relative: Relative, execution: Execution) -> str:
    if relative.how in ("file", "copy"):
        paths = [escape(shorten(path, execution.cwd)) for path in relative.paths]
        listed = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        return listed + ("  (a copy with the same bytes)" if relative.how == "copy" else "")
    if relative.how != "modification":
        return relative.how
    from clew.replay.repeat.parameters import list_changes

    pair = (relative.command, execution.command)
    changes = list_changes(*(pair if relative.id == execution.parent else pair[::-1]))
    return escape(", ".join(map(format_change, changes))) or "other files"


def shorten(path: str, cwd: str | None) -> str:
    """The path relative to the working directory of the execution, if it is below."""
    if cwd and path.startswith(f"{cwd}/"):
        return os.path.relpath(path, cwd)
    return path


def process_lines(tree: Sequence[Process], *, longest: int | None = None) -> Iterator[str]:
    """The processes as a tree; children below the process that started them. `longest`: how many
    characters of a command are shown."""
    known = {process.id for process in tree}
    children: dict[str | None, list[Process]] = {}
    for process in tree:
        parent = process.parent if process.parent in known else None
        children.setdefault(parent, []).append(process)
    stack = [("", "", process) for process in reversed(children.get(None, []))]
    drawn: set[str] = set()
    while stack:
        lead, margin, process = stack.pop()
        drawn.add(process.id)
        ending = f"  status {escape(str(process.status))}" if process.status else ""
        command = format_command(process.command)
        if longest is not None and len(command) > longest:
            command = f"{command[: longest - 1]}…"
        yield f"  {lead}{command}  {dim(escape(process.id))}{ending}"
        below = [child for child in children.get(process.id, []) if child.id not in drawn]
        for n, child in reversed(list(enumerate(below))):
            last = n == len(below) - 1
            branch = margin + ("└─ " if last else "├─ ")
            stack.append((branch, margin + ("   " if last else "│  "), child))


def gap_lines(document: ExecutionDetail) -> Iterator[str]:
    if not document.gaps:
        return
    yield from ("", bold("Not recorded"))
    for gap in document.gaps:
        where = f"  {escape(gap.path)}" if gap.path else ""
        yield f"  {escape(gap.what)}{where}: {escape(gap.why)}"


def format_redacted(document: ExecutionDetail) -> str:
    """Which values and files are not in the record because they are secret."""
    environment = document.environment
    known = environment["variables"]
    variables = [name for name in environment.get("redacted", ()) if name in known]
    words = [
        f"{number} ({', '.join(name for name in names if name)})"
        for number, names in environment.get("argument_secrets", {}).items()
    ]
    parts = {"variables": variables, "words": words, "files": document.credential_files}
    return "; ".join(f"{kind} {', '.join(found)}" for kind, found in parts.items() if found)


def environment_lines(document: ExecutionDetail) -> Iterator[tuple[str, str]]:
    """Every fact about the environment by its path (`cpu.model`), the variables last."""
    yield "git", format_git(document.git)
    facets = document.environment
    for name, value in sorted(facets.items()):
        if name not in ("variables", "redacted", "argument_secrets", "variables_b64"):
            yield from _facet_lines(name, value)
    if redacted := format_redacted(document):
        yield "redacted", redacted
    for name, value in sorted(facets["variables"].items()):
        yield f"variables.{name}", str(value)


def _facet_lines(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if value in (None, "", [], {}):
        return
    if isinstance(value, dict):
        for key, inner in sorted(value.items()):
            yield from _facet_lines(f"{name}.{key}", inner)
    elif isinstance(value, list) and len(value) > _MOST_VALUES:
        yield name, f"{len(value)} values (with --json)"
    elif isinstance(value, list):
        yield name, ", ".join("unlimited" if one is None else str(one) for one in value)
    else:
        yield name, str(value)
