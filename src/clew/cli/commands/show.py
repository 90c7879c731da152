"""`clew show`: show one execution or pipeline run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from clew.api.pipeline_artifacts import is_run
from clew.cli.commands.list import format_state
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import (
    bold,
    dim,
    escape,
    format_command,
    format_count,
    format_duration,
    format_size,
    format_time,
    print_json,
    print_line,
    print_table,
)


@click.command(
    "show",
    short_help=COMMANDS["show"],
    epilog="Examples: clew show e2 | clew show e2 --detail | "
    "clew show e2 --requirements > requirements.txt",
)
@execution_argument
@click.option(
    "--detail", "part", flag_value="detail", help="List every file: role, class, package."
)
@click.option("--requirements", "part", flag_value="requirements", help="Print a requirements.txt.")
@click.option(
    "--packages", "part", flag_value="packages", help="Print the system packages it needs."
)
@click.option(
    "--readme", "part", flag_value="readme", help="Print a README section: how to run it."
)
@json_option
def command(execution: str, part: str | None, as_json: bool) -> None:
    """Show execution ID: its processes, environment, totals, and what could not be recorded.

    --detail lists every file with its role (input, output, transient), its class (data,
    configuration, source, package, system) and the package that installed it.
    """
    import clew

    if is_run(execution) and part is None:
        from clew.cli.commands.pipeline.show import print_run

        print_run(execution, as_json)
        return
    with clew.open() as project:
        if part in ("requirements", "packages", "readme"):
            text = project.report(execution, part)
            if as_json:
                print_json({"execution": execution, part: text})
            else:
                print_line(text.rstrip("\n"))
            return
        document = project.show(execution, detail=part == "detail")
    if as_json:
        print_json(document)
        return
    for line in summarize(document):
        print_line(line)
    if part == "detail":
        print_line()
        _print_files(document["files"])
        _print_network(document["network"])


def summarize(document: dict[str, Any]) -> Iterator[str]:
    name = f"  {escape(document['name'])}" if document["name"] else ""
    yield (
        bold(escape(document["id"]) + name)
        + f"  {escape(format_state(document['state'], document['status'], document['signal']))}"
    )
    yield format_command(document["command"])
    took = format_duration(document["seconds"])
    yield dim(
        " · ".join(
            word
            for word in (
                f"in {escape(document['cwd'] or '')}",
                format_time(document["started"]),
                f"took {took}" if took else "",
                f"by {escape(document['agent'])}" if document["agent"] else "",
                "made elsewhere" if document["made_elsewhere"] else "",
                f"signed by {escape(document['signed_by'])}" if document["signed_by"] else "",
            )
            if word
        )
    )
    yield (
        f"{format_count(document['processes'], 'process', 'processes')}, "
        f"{format_count(document['inputs'], 'input')}, "
        f"{format_count(document['outputs'], 'output')}, "
        f"{format_size(document['bytes'] or 0)} ({format_size(document['new_bytes'] or 0)} new)"
    )
    yield ""
    yield bold("Processes")
    yield from process_lines(document["tree"])
    yield ""
    yield bold("Environment")
    for word, value in environment_lines(document):
        yield f"  {escape(word):<12}{escape(value)}"
    if document["gaps"]:
        yield ""
        yield bold("Not recorded")
        for gap in document["gaps"]:
            where = f"  {escape(gap['path'])}" if gap["path"] else ""
            yield f"  {escape(gap['what'])}{where}: {escape(gap['why'])}"


def process_lines(tree: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The processes as a tree; children below the process that started them."""
    known = {process["id"] for process in tree}
    children: dict[str | None, list[dict[str, Any]]] = {}
    for process in tree:
        parent = process["parent"] if process["parent"] in known else None
        children.setdefault(parent, []).append(process)
    stack = [("", "", process) for process in reversed(children.get(None, []))]
    drawn: set[str] = set()
    while stack:
        lead, margin, process = stack.pop()
        drawn.add(process["id"])
        ending = f"  status {escape(str(process['status']))}" if process["status"] else ""
        yield f"  {lead}{format_command(process['command'])}  {dim(escape(process['id']))}{ending}"
        below = [child for child in children.get(process["id"], []) if child["id"] not in drawn]
        for n, child in reversed(list(enumerate(below))):
            last = n == len(below) - 1
            branch = margin + ("└─ " if last else "├─ ")
            stack.append((branch, margin + ("   " if last else "│  "), child))


def environment_lines(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """One line per facet; long values are only counted, and --json prints them."""
    if document["git"]:
        git = document["git"]
        dirty = ", with uncommitted changes" if git.get("dirty") else ""
        yield "git", f"{git.get('commit')}{dirty}"
    if redacted := format_redacted(document):
        yield "redacted", redacted
    for name, value in sorted(document["environment"].items()):
        if value in (None, "", [], {}) or name in ("redacted", "argument_secrets"):
            continue
        if isinstance(value, dict) and not any(isinstance(v, (dict, list)) for v in value.values()):
            flat = ", ".join(f"{key} {item}" for key, item in value.items() if item is not None)
            yield name, flat if name != "variables" else format_count(len(value), "variable")
        elif name == "devices":
            yield name, ", ".join(value)
        elif isinstance(value, (dict, list)):
            yield name, f"{len(value)} (with --json)"
        else:
            yield name, str(value)


def format_redacted(document: dict[str, Any]) -> str:
    """Which values and files are not in the record because they are secret."""
    environment = document["environment"]
    known = environment["variables"]
    variables = [name for name in environment.get("redacted", ()) if name in known]
    words = [
        f"{number} ({', '.join(name for name in names if name)})"
        for number, names in environment.get("argument_secrets", {}).items()
    ]
    parts = {"variables": variables, "words": words, "files": document.get("credential_files", ())}
    return "; ".join(f"{kind} {', '.join(found)}" for kind, found in parts.items() if found)


def _print_files(files: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("role", "class", "access", "size", "digest", "package", "path"),
        (
            (
                file["role"],
                file["class"],
                ("r" if file["read"] else "-") + ("w" if file["written"] else "-"),
                format_size(file["size"]),
                (file["digest"] or "")[:15],
                format_package(file["package"]),
                file["path"],
            )
            for file in files
        ),
    )


def format_package(package: dict[str, Any] | None) -> str:
    if package is None:
        return ""
    origin = "" if package["requested"] else " (dependency)"
    return f"{package['manager']} {package['name']} {package['version']}{origin}"


def _print_network(peers: Sequence[dict[str, Any]]) -> None:
    if peers:
        print_line()
        print_table(
            ("address", "host", "port", "by"),
            (
                (peer["address"], peer["host"] or "", str(peer["port"] or ""), peer["by"])
                for peer in peers
            ),
        )
