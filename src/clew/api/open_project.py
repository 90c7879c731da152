"""Which project is meant: the one of a path, of the current folder, or of a server."""

from __future__ import annotations

from os import fspath
from pathlib import Path

from clew import project_directory as folders
from clew import settings as environment
from clew.api.local.archive import Place
from clew.api.local.project import Project
from clew.errors import NotFound
from clew.settings import Settings


def open(  # noqa: A001 (the public name is clew.open)
    path: Place | None = None, *, here: bool = False, checkout: bool = False
) -> Project:
    """The project of `path`, or of the current folder: the nearest one upwards.

    Where CLEW_SERVER names a server and no path is given, or that of a `checkout`, the project
    that it serves; with `here` the one of the current folder all the same.
    """
    settings = environment.load()
    if path is not None and not (checkout and settings.server is not None):
        start = Path(fspath(path)).resolve()
        return Project(folders.find(start, _without_project(settings)), settings)
    if settings.server is not None and not here:
        from clew.api.remote.project import served

        return served(settings)
    return Project(folders.find(_here(settings), settings), settings)


def init(path: Place = ".") -> Project:
    """Make a project in `path`; one that is there already is opened as it is."""
    return Project(folders.create(Path(fspath(path)).resolve()), environment.load())


def _here(settings: Settings) -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        if settings.project is not None:
            return settings.project
        raise NotFound(
            "the current folder no longer exists", hint="cd to a folder that does"
        ) from error


def _without_project(settings: Settings) -> Settings:
    """A path that was given says more than CLEW_PROJECT does."""
    from dataclasses import replace

    return replace(settings, project=None)
