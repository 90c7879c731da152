"""Export an execution: W3C PROV, RO-Crate, container image, Dockerfile, reports."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from clew.api.local.executions import find_execution
from clew.errors import NotAllowed, UsageError

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.replay.export.portability import PortableExecution

Say = Callable[[str], None]

_DIRECTORY_FORMATS = {"ro-crate": "an RO-Crate", "dockerfile": "a Dockerfile with its files"}
_FILE_FORMATS = {"oci": "an image", "runner": "a runner"}


def report(project: ProjectState, text: str, kind: str) -> str:
    """The execution's `requirements`, `packages` or `readme`."""
    from clew.prov.export import requirements_reports

    document = find_execution(project, text).details.as_json()
    if kind == "requirements":
        return requirements_reports.format_requirements(document["files"])
    if kind == "packages":
        return requirements_reports.format_system_packages(document["files"])
    if kind == "readme":
        return requirements_reports.format_readme(document, document["files"])
    raise UsageError(f"unknown report {kind!r}", hint="requirements, packages or readme")


def export(
    project: ProjectState,
    text: str,
    *,
    format: str,  # noqa: A002
    to: Path | BinaryIO | None,
    say: Say,
) -> bytes | Path | None:
    """Write W3C PROV or an image to the file `to`, or an RO-Crate or Dockerfile to the directory
    `to`. Without `to`, W3C PROV is returned as bytes."""
    check_target(format, to)
    if format in _DIRECTORY_FORMATS:
        assert isinstance(to, Path)
        with new_directory(to) as draft:
            (_crate if format == "ro-crate" else _dockerfile)(project, text, draft, say)
        return to
    if format in _FILE_FORMATS:
        assert to is not None
        with open_output(to) as out:
            (_image if format == "oci" else _runner)(project, text, out, say)
        make_executable(format, to)
        return to if isinstance(to, Path) else None
    document = _document(project, text, format)
    if to is None:
        return document
    with open_output(to) as out:
        out.write(document)
    return to if isinstance(to, Path) else None


def check_target(format: str, to: Path | BinaryIO | None) -> None:  # noqa: A002
    """Raise an error if the format cannot be written to `to`."""
    if format in _DIRECTORY_FORMATS and not isinstance(to, Path):
        raise UsageError(
            f"{_DIRECTORY_FORMATS[format]} is a directory", hint="name one with -o DIR"
        )
    if format in _FILE_FORMATS and to is None:
        raise UsageError(f"{_FILE_FORMATS[format]} is a file", hint="name one with -o FILE")


def is_directory(format: str) -> bool:  # noqa: A002
    return format in _DIRECTORY_FORMATS


def make_executable(format: str, to: Path | BinaryIO | None) -> None:  # noqa: A002
    """Let the owner of a runner start it."""
    if format == "runner" and isinstance(to, Path) and to.is_file():
        to.chmod(to.stat().st_mode | 0o111)


def _document(project: ProjectState, text: str, format: str) -> bytes:  # noqa: A002
    from clew.prov.export import w3c

    writers = {"prov-json": w3c.export_prov_json, "prov-n": w3c.export_prov_n}
    if format not in writers:
        known = ", ".join([*writers, *_DIRECTORY_FORMATS, *_FILE_FORMATS])
        raise UsageError(f"unknown format {format!r}", hint=f"there are {known}")
    return writers[format](project.graph, text)


def _crate(project: ProjectState, text: str, directory: Path, say: Say) -> None:
    from clew.prov.export.ro_crate import write_crate
    from clew.store import Store

    with Store(project.directory.store) as store:
        write_crate(project.graph, text, directory, alive=project.is_alive, copy=store.restore)


def _dockerfile(project: ProjectState, text: str, directory: Path, say: Say) -> None:
    from clew.replay.export.dockerfile import write_context
    from clew.store import Store

    portable = _portable(project, text, say)
    with Store(project.directory.store) as store:
        write_context(portable, directory, restore=store.restore)


def _image(project: ProjectState, text: str, out: BinaryIO, say: Say) -> None:
    from clew.replay.export.oci_image import write_image
    from clew.run.spool_directories import hold_scratch
    from clew.store import Store

    portable = _portable(project, text, say)
    with hold_scratch(project.directory) as scratch, Store(project.directory.store) as store:
        write_image(portable, out, read=store.read, scratch=scratch)


def _runner(project: ProjectState, text: str, out: BinaryIO, say: Say) -> None:
    from clew.replay.export.runner import write_runner
    from clew.store import Store

    portable = _portable(project, text, say)
    with Store(project.directory.store) as store:
        write_runner(portable, out, read=store.read)


def _portable(project: ProjectState, text: str, say: Say) -> PortableExecution:
    from clew.prov.queries.execution_record import load_record
    from clew.replay.export.portability import make_portable
    from clew.replay.sandbox.initial_files import make_listing_reader
    from clew.store import Store

    with Store(project.directory.store) as store:
        portable = make_portable(load_record(project.graph, text), make_listing_reader(store))
    for warning in portable.warnings:
        say(warning)
    return portable


@contextlib.contextmanager
def open_output(to: Path | BinaryIO) -> Iterator[BinaryIO]:
    """Replace a file atomically; a pipe or a device is written directly."""
    if not isinstance(to, Path):
        yield to
        return
    special = to.exists() and not to.is_file()
    target = to if special else Path(os.path.realpath(to))
    place = target if special else _temporary_path(target)
    with _translate_os_errors(to):
        try:
            with open(place, "wb") as out:
                yield out
            if not special:
                place.rename(target)
        finally:
            if not special:
                place.unlink(missing_ok=True)


@contextlib.contextmanager
def new_directory(to: Path) -> Iterator[Path]:
    """Create a directory atomically: yield a temporary one and rename it at the end."""
    target = to.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotAllowed(f"{to} exists already", hint="name a new directory with -o DIR")
    draft = _temporary_path(target)
    with _translate_os_errors(to):
        try:
            yield draft
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _temporary_path(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


@contextlib.contextmanager
def _translate_os_errors(to: Path) -> Iterator[None]:
    from clew.store.errors import from_os

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise from_os(error, doing=f"write {to}") from error
