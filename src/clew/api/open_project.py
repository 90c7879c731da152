"""Open or create a project: the one of a path, of the current directory, or of a server."""

from os import fspath
from pathlib import Path

from clew import project_directory
from clew import settings as environment
from clew.api.local.project import LocalProject, open_local_project
from clew.api.parameter_types import StrPath
from clew.api.project import Project


def open(  # noqa: A001 (the public name is clew.open)
    path: StrPath | None = None, *, here: bool = False, checkout: bool = False
) -> Project:
    """Open the project that contains `path`, or the current directory.

    If CLEW_SERVER is set and no path is given, or the path of a `checkout`, open the server's
    project; `here` always opens the local one.
    """
    settings = environment.load()
    if path is not None and not (checkout and settings.server is not None):
        return open_local_project(settings, path)
    if settings.server is not None and not here:
        from clew.api.remote.project import open_remote_project

        return open_remote_project(settings)
    return open_local_project(settings)


def init(path: StrPath = ".", *, trust: bool = False) -> LocalProject:
    """Create a project in `path`; open it if there is one already. `trust`: let the executions of
    an existing one that was not made by this user here count as the user's own."""
    settings = environment.load()
    directory = project_directory.init(Path(fspath(path)).resolve(), settings, trust=trust)
    return LocalProject(directory, settings)
