"""Open the project of the current directory, or create it there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli.output import print_message

if TYPE_CHECKING:
    from clew.api.project import Project


def open_or_create_project(*, here: bool = False, quiet: bool = False) -> Project:
    """`here`: on this machine, even if CLEW_SERVER is set. `quiet`: without a message.

    In `/` and in the home directory a project is only used if the user created it: every directory
    below it would belong to it.
    """
    import clew
    from clew.errors import NoProject

    try:
        return clew.open(here=here)
    except NoProject:
        directory = Path.cwd()
        if directory in (Path("/"), Path.home().resolve()):
            raise NoProject(
                f"there is no project here, and Clew creates none in {directory} unless you ask",
                hint=f"cd to the directory of your work, or run clew init {directory}",
            ) from None
        project = clew.init(".")
        if not quiet:
            print_created(project)
        return project


def print_created(project: Project) -> None:
    print_message(f"clew: created a project in {project.root}")
