"""An execution in the forms other people and programs take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import NotAllowed, UsageError

if TYPE_CHECKING:
    from clew.api.project import Project


def report(project: Project, text: str, kind: str) -> str:
    """The execution's `requirements`, `packages` or `readme`."""
    from clew.prov import reports

    shown = project.show(text, detail=True)
    if kind == "requirements":
        return reports.requirements(shown["files"])
    if kind == "packages":
        return reports.system_packages(shown["files"])
    if kind == "readme":
        return reports.readme(shown, shown["files"])
    raise UsageError(f"no report is called {kind!r}", hint="requirements, packages or readme")


def export(project: Project, text: str, *, format: str, to: Path | None) -> bytes | Path:  # noqa: A002
    """W3C PROV as bytes, or in the file `to`; an RO-Crate in the folder `to`."""
    if format == "ro-crate":
        return _crate(project, text, to)
    from clew.prov.export import w3c

    writers = {"prov-json": w3c.prov_json, "prov-n": w3c.prov_n}
    if format not in writers:
        raise UsageError(f"no format is called {format!r}", hint="prov-json, prov-n or ro-crate")
    document = writers[format](project._graph, text)
    if to is None:
        return document
    try:
        to.write_bytes(document)
    except OSError as error:
        raise NotAllowed(f"cannot write {to}: {error.strerror}", hint="-o FILE") from error
    return to


def _crate(project: Project, text: str, to: Path | None) -> Path:
    """Into a folder of its own: one that is there whole, or not at all."""
    if to is None:
        raise UsageError("an RO-Crate is a folder", hint="name one with -o DIR")
    import secrets
    import shutil

    from clew.prov.export.crates import write_crate
    from clew.store import Store

    target = to.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise NotAllowed(f"{to} exists already", hint="name a new folder with -o DIR")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with Store(project._folder.store) as store:
            write_crate(project._graph, text, draft, alive=project._alive, copy=store.restore)
        draft.rename(target)
    except OSError as error:
        raise NotAllowed(f"cannot write {to}: {error.strerror}", hint="-o DIR") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return to
