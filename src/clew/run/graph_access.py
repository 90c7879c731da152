"""Open the graph for one step of a recording, and remember a database that does not answer."""

import contextlib
import time
from collections.abc import Iterator

from clew import db
from clew.errors import NoDatabase
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.settings import Settings

_RETRY_AFTER = 60.0
"""Seconds after which a database that did not answer is asked again."""


class GraphAccess:
    """Connects anew for each step, since a database may restart while the command runs. One that
    did not answer is not tried again at once, so the command's result waits for it only once."""

    def __init__(self, directory: ProjectDirectory, settings: Settings, *, patience: float) -> None:
        self._path = directory.graph
        self._uid = directory.uid
        self._address = settings.graph
        self._patience = patience
        self._error: NoDatabase | None = None
        self._retry_at = 0.0

    @property
    def unreachable(self) -> bool:
        """Whether the database once did not answer."""
        return self._error is not None

    def mark_unreachable(self, error: NoDatabase) -> None:
        self._error = error
        self._retry_at = time.monotonic() + _RETRY_AFTER

    @contextlib.contextmanager
    def open(self) -> Iterator[Graph]:
        if self._error is not None and time.monotonic() < self._retry_at:
            raise self._error
        try:
            with db.connect(
                self._path, address=self._address, patience=self._patience
            ) as connection:
                yield Graph(connection, self._uid)
        except NoDatabase as error:
            self.mark_unreachable(error)
            raise
