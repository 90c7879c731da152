"""An execution in the forms other people and programs take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import UsageError

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
    raise NotImplementedError
