"""`clew show`: one execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from clew.api.pipeline_artifacts import is_run
from clew.cli.commands.list import state
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option
from clew.cli.output import (
    clean,
    command_line,
    counted,
    duration,
    faint,
    print_json,
    print_table,
    say,
    size,
    strong,
    when,
)


@click.command(
    "show",
    short_help=COMMANDS["show"],
    epilog="Examples: clew show e2 | clew show e2 --detail | "
    "clew show e2 --requirements > requirements.txt",
)
@execution_argument
@click.option("--detail", "part", flag_value="detail", help="Every file: role, class, package.")
@click.option("--requirements", "part", flag_value="requirements", help="A requirements.txt.")
@click.option("--packages", "part", flag_value="packages", help="The system packages it needs.")
@click.option("--readme", "part", flag_value="readme", help="A README section: how to run it.")
@json_option
def command(execution: str, part: str | None, as_json: bool) -> None:
    """Show execution ID: its processes, environment, totals, and what could not be seen.

    --detail lists every file with its role (input, output, transient), its class (data,
    configuration, source, package, system) and the package that installed it.
    """
    import clew

    if is_run(execution) and part is None:
        from clew.cli.commands.pipeline.show import shown

        shown(execution, as_json)
        return
    with clew.open() as project:
        if part in ("requirements", "packages", "readme"):
            text = project.report(execution, part)
            if as_json:
                print_json({"execution": execution, part: text})
            else:
                say(text.rstrip("\n"))
            return
        document = project.show(execution, detail=part == "detail")
    if as_json:
        print_json(document)
        return
    for line in summary(document):
        say(line)
    if part == "detail":
        say()
        _print_files(document["files"])
        _print_network(document["network"])


def summary(document: dict[str, Any]) -> Iterator[str]:
    name = f"  {clean(document['name'])}" if document["name"] else ""
    yield strong(document["id"] + name) + f"  {state(document)}"
    yield command_line(document["command"])
    took = duration(document["seconds"])
    yield faint(
        " · ".join(
            word
            for word in (
                f"in {clean(document['cwd'] or '')}",
                when(document["started"]),
                f"took {took}" if took else "",
                f"by {clean(document['agent'])}" if document["agent"] else "",
                "made elsewhere" if document["made_elsewhere"] else "",
                f"signed by {clean(document['signed_by'])}" if document["signed_by"] else "",
            )
            if word
        )
    )
    yield (
        f"{counted(document['processes'], 'process', 'processes')}, "
        f"{counted(document['inputs'], 'input')}, {counted(document['outputs'], 'output')}, "
        f"{size(document['bytes'] or 0)} ({size(document['new_bytes'] or 0)} new)"
    )
    yield ""
    yield strong("Processes")
    yield from processes(document["tree"])
    yield ""
    yield strong("Environment")
    for word, value in environment(document):
        yield f"  {clean(word):<12}{clean(value)}"
    if document["gaps"]:
        yield ""
        yield strong("Not seen")
        for gap in document["gaps"]:
            where = f"  {clean(gap['path'])}" if gap["path"] else ""
            yield f"  {clean(gap['what'])}{where}: {clean(gap['why'])}"


def processes(tree: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The processes as a tree; children stand below the one that started them."""
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
        ending = f"  status {process['status']}" if process["status"] else ""
        yield f"  {lead}{command_line(process['command'])}  {faint(process['id'])}{ending}"
        below = [child for child in children.get(process["id"], []) if child["id"] not in drawn]
        for n, child in reversed(list(enumerate(below))):
            last = n == len(below) - 1
            branch = margin + ("└─ " if last else "├─ ")
            stack.append((branch, margin + ("   " if last else "│  "), child))


def environment(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """One line a facet; what is long is counted, and there in full with --json."""
    if document["git"]:
        git = document["git"]
        dirty = ", with changes not committed" if git.get("dirty") else ""
        yield "git", f"{git.get('commit')}{dirty}"
    for name, value in sorted(document["environment"].items()):
        if value in (None, "", [], {}):
            continue
        if isinstance(value, dict) and not any(isinstance(v, (dict, list)) for v in value.values()):
            flat = ", ".join(f"{key} {told}" for key, told in value.items() if told is not None)
            yield name, flat if name != "variables" else counted(len(value), "variable")
        elif isinstance(value, (dict, list)):
            yield name, f"{len(value)} (with --json)"
        else:
            yield name, str(value)


def _print_files(files: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("role", "class", "access", "size", "digest", "package", "path"),
        (
            (
                file["role"],
                file["class"],
                ("r" if file["read"] else "-") + ("w" if file["written"] else "-"),
                size(file["size"]),
                (file["digest"] or "")[:15],
                package(file["package"]),
                file["path"],
            )
            for file in files
        ),
    )


def package(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    asked = "" if found["requested"] else " (came along)"
    return f"{found['manager']} {found['name']} {found['version']}{asked}"


def _print_network(peers: Sequence[dict[str, Any]]) -> None:
    if peers:
        say()
        print_table(
            ("address", "host", "port", "by"),
            (
                (peer["address"], peer["host"] or "", str(peer["port"] or ""), peer["by"])
                for peer in peers
            ),
        )
