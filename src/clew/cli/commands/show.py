"""`clew show`: show one execution or pipeline run."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import click
import msgspec

from clew.api.pipeline_artifacts import is_run
from clew.cli.commands.list import print_columns
from clew.cli.execution_summary import (
    environment_lines,
    gap_lines,
    header_lines,
    process_lines,
    shorten,
    summary_lines,
)
from clew.cli.main import COMMANDS
from clew.cli.options import execution_argument, json_option, pager_option, web_option
from clew.cli.output import (
    bold,
    escape,
    format_size,
    print_json,
    print_line,
    print_message,
    print_table,
)
from clew.documents.executions.detail import File, Package, Peer
from clew.documents.executions.summary import ExecutionSummary

CLASSES = ("data", "configuration", "source", "package", "system")
ROLES = ("input", "output", "transient")
_OTHER_COLUMNS = 48
"""Characters that a terminal needs for what follows the path: role, class, size and package."""


@click.command(
    "show",
    short_help=COMMANDS["show"],
    epilog="Examples: clew show latest | clew show e2 --detail '*.csv' | "
    "clew show e2 --requirements > requirements.txt",
)
@execution_argument
@click.argument("globs", metavar="[GLOB]...", nargs=-1)
@click.option("--detail", "part", flag_value="detail", help="List all processes, files and peers.")
@click.option(
    "--environment", "part", flag_value="environment", help="Print everything that surrounded it."
)
@click.option("--requirements", "part", flag_value="requirements", help="Print a requirements.txt.")
@click.option(
    "--packages", "part", flag_value="packages", help="Print the system packages it needs."
)
@click.option(
    "--readme", "part", flag_value="readme", help="Print a README section: how to run it."
)
@click.option("--class", "classes", type=click.Choice(CLASSES), multiple=True, help="Files of it.")
@click.option("--role", "roles", type=click.Choice(ROLES), multiple=True, help="Files with it.")
@web_option
@pager_option
@json_option
def command(
    execution: str,
    globs: tuple[str, ...],
    part: str | None,
    classes: tuple[str, ...],
    roles: tuple[str, ...],
    web: bool,
    as_json: bool,
) -> None:
    """Show execution ID on one screen: result, Git commit, parameters, your own inputs and outputs,
    packages, notes, and the executions it was derived from and that were derived from it.

    --detail lists every file: path, role, class, size, and the package that installed it; your own
    files first. GLOB, --class and --role select files, and list only these.
    """
    import clew

    if web:
        from clew.cli.web_page import open_run

        open_run(execution, as_json=as_json)
        return
    chosen = bool(globs or classes or roles)
    if chosen and part not in (None, "detail"):
        raise click.UsageError(f"--{part} lists no files to select", click.get_current_context())
    if is_run(execution) and part is None and not chosen:
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
        document = project.show(execution, detail=chosen or part == "detail")
    if chosen:
        files = document.files or ()
        kept = tuple(f for f in files if _selects(f, document.cwd, globs, classes, roles))
        document = msgspec.structs.replace(document, files=kept)
    if as_json:
        print_json(document.as_json())
    elif chosen:
        print_files(document.files or (), document.cwd)
    else:
        for line in _lines(document, part):
            print_line(line)
        if part == "detail":
            print_line()
            print_files(document.files or (), document.cwd)
            _print_network(document.network or ())


def _selects(
    file: File,
    cwd: str | None,
    globs: Sequence[str],
    classes: Sequence[str],
    roles: Sequence[str],
) -> bool:
    names = (file.path, shorten(file.path, cwd), file.path.rpartition("/")[2])
    return (
        (not classes or file.category in classes)
        and (not roles or file.role in roles)
        and (not globs or any(fnmatchcase(name, glob) for name in names for glob in globs))
    )


def _lines(document: ExecutionSummary, part: str | None) -> Iterator[str]:
    if part is None:
        yield from summary_lines(document)
        return
    yield from header_lines(document)
    if part == "environment":
        yield from ("", bold("Environment"))
        for word, value in environment_lines(document):
            yield f"  {escape(word):<22}  {escape(value)}"
    else:
        yield from ("", bold("Processes"), *process_lines(document.tree))
    yield from gap_lines(document)


def print_files(files: Sequence[File], cwd: str | None) -> None:
    if not files:
        print_message("no file matches; clew show ID --detail lists all")
        return
    room = shutil.get_terminal_size().columns - _OTHER_COLUMNS if sys.stdout.isatty() else None
    print_columns(
        ("path", "role", "class", "access", "size", "digest", "package"),
        [
            (
                _cut_path(shorten(file.path, cwd), room),
                file.role,
                file.category,
                ("r" if file.read else "-") + ("w" if file.written else "-"),
                format_size(file.size),
                (file.digest or "")[:15],
                format_package(file.package),
            )
            for file in sorted(files, key=lambda file: _rank(file, cwd))
        ],
        without=("access", "digest"),
    )


def _cut_path(path: str, room: int | None) -> str:
    """The end of a path that is longer than there is room for."""
    if room is None or len(path) <= max(room, 20):
        return path
    return "…" + path[1 - max(room, 20) :]


def _rank(file: File, cwd: str | None) -> tuple[object, ...]:
    """The user's own files first, those in the working directory before others, then packages."""
    path = shorten(file.path, cwd)
    return max(CLASSES.index(file.category), CLASSES.index("source")), path.startswith("/"), path


def format_package(package: Package | None) -> str:
    if package is None:
        return ""
    origin = "" if package.requested else " (dependency)"
    return f"{package.manager} {package.name} {package.version}{origin}"


def _print_network(peers: Sequence[Peer]) -> None:
    if peers:
        print_line()
        print_table(
            ("address", "host", "port", "by"),
            ((peer.address, peer.host or "", str(peer.port or ""), peer.by) for peer in peers),
        )
