"""The interface of an open project, as far as this package needs it."""

from pathlib import Path
from typing import Protocol

from clew.documents.ids import Uid
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.settings import Settings


class OpenProject(Protocol):
    """Implemented by `clew.api.project_context.ProjectState`."""

    directory: ProjectDirectory
    settings: Settings

    @property
    def root(self) -> Path: ...

    @property
    def graph(self) -> Graph:
        """Opened again on first use after a loss of the database."""

    def is_alive(self, uid: Uid) -> bool:
        """Whether a process on this machine holds the lock of the run."""
