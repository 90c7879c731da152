"""An execution in the forms other people and programs take."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from clew.api.local.executions import show_execution
from clew.errors import NotAllowed, UsageError

if TYPE_CHECKING:
    from clew.api.project_state import ProjectState
    from clew.replay.export.portable_execution import PortableExecution

Say = Callable[[str], None]

_FOLDERS = {"ro-crate": "an RO-Crate", "dockerfile": "a Dockerfile with its files"}


def report(project: ProjectState, text: str, kind: str) -> str:
    """The execution's `requirements`, `packages` or `readme`."""
    from clew.prov.export import reports

    shown = show_execution(project, text, detail=True)
    if kind == "requirements":
        return reports.format_requirements(shown["files"])
    if kind == "packages":
        return reports.format_system_packages(shown["files"])
    if kind == "readme":
        return reports.format_readme(shown, shown["files"])
    raise UsageError(f"no report is called {kind!r}", hint="requirements, packages or readme")


def export(
    project: ProjectState,
    text: str,
    *,
    format: str,  # noqa: A002
    to: Path | BinaryIO | None,
    say: Say,
) -> bytes | Path | None:
    """W3C PROV as bytes, or in the file `to`; an image in the file `to`; folders in `to`."""
    check_target(format, to)
    if format in _FOLDERS:
        assert isinstance(to, Path)
        with new_directory(to) as draft:
            (_crate if format == "ro-crate" else _dockerfile)(project, text, draft, say)
        return to
    if format == "oci":
        assert to is not None
        with open_output(to) as out:
            _image(project, text, out, say)
        return to if isinstance(to, Path) else None
    document = _document(project, text, format)
    if to is None:
        return document
    with open_output(to) as out:
        out.write(document)
    return to if isinstance(to, Path) else None


def check_target(format: str, to: Path | BinaryIO | None) -> None:  # noqa: A002
    """Whether this can be written there."""
    if format in _FOLDERS and not isinstance(to, Path):
        raise UsageError(f"{_FOLDERS[format]} is a folder", hint="name one with -o DIR")
    if format == "oci" and to is None:
        raise UsageError("an image is a file", hint="name one with -o FILE")


def _document(project: ProjectState, text: str, format: str) -> bytes:  # noqa: A002
    from clew.prov.export import w3c

    writers = {"prov-json": w3c.export_prov_json, "prov-n": w3c.export_prov_n}
    if format not in writers:
        known = ", ".join([*writers, *_FOLDERS])
        raise UsageError(f"no format is called {format!r}", hint=f"{known} or oci")
    return writers[format](project.graph, text)


def _crate(project: ProjectState, text: str, folder: Path, say: Say) -> None:
    from clew.prov.export.ro_crate import write_crate
    from clew.store import Store

    with Store(project.directory.store) as store:
        write_crate(project.graph, text, folder, alive=project.is_alive, copy=store.restore)


def _dockerfile(project: ProjectState, text: str, folder: Path, say: Say) -> None:
    from clew.replay.export.build_context import write_context
    from clew.store import Store

    what = _portable(project, text, say)
    with Store(project.directory.store) as store:
        write_context(what, folder, restore=store.restore)


def _image(project: ProjectState, text: str, out: BinaryIO, say: Say) -> None:
    from clew.replay.export.oci_image import write_image
    from clew.run import execution_locks
    from clew.store import Store

    what = _portable(project, text, say)
    scratch, lock = execution_locks.create_scratch(project.directory, secrets.token_hex(8))
    try:
        with Store(project.directory.store) as store:
            write_image(what, out, read=store.read, scratch=scratch)
    finally:
        execution_locks.remove_tree(scratch)
        os.close(lock)


def _portable(project: ProjectState, text: str, say: Say) -> PortableExecution:
    from clew.prov.queries.execution_record import load_record
    from clew.replay.export.portable_execution import make_portable
    from clew.replay.stored_listings import listing_reader
    from clew.store import Store

    with Store(project.directory.store) as store:
        what = make_portable(load_record(project.graph, text), listing_reader(store))
    for warning in what.warnings:
        say(warning)
    return what


@contextlib.contextmanager
def open_output(to: Path | BinaryIO) -> Iterator[BinaryIO]:
    """A file that is there whole, or as it was before; a pipe or a device is simply written."""
    if not isinstance(to, Path):
        yield to
        return
    special = to.exists() and not to.is_file()
    target = to if special else Path(os.path.realpath(to))
    place = target if special else _beside(target)
    with _refusing(to):
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
    """A folder of its own: one that is there whole, or not at all."""
    target = to.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotAllowed(f"{to} exists already", hint="name a new folder with -o DIR")
    draft = _beside(target)
    with _refusing(to):
        try:
            yield draft
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}")


@contextlib.contextmanager
def _refusing(to: Path) -> Iterator[None]:
    from clew.store.errors import from_os

    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise from_os(error, doing=f"write {to}") from error
