"""The state that all routes share: the project, its settings, and the events between threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus

from clew.api.local.project import LocalProject
from clew.errors import ClewError, NotFound
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph, MayRead
from clew.server.polling_feed import Feeds
from clew.settings import Settings
from clew.workloads.backend import Backend
from clew.workloads.forms.spawner_config import SpawnerConfig

SPAWNER_FILE = "spawner_ui_config.yaml"
"""In `.clew`."""


class Service:
    """One served project. Safe to use from any thread."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        token: str,
        *,
        on_host: bool = False,
        plain_log: bool = False,
    ) -> None:
        """`on_host`: container components run as processes, without their images; `plain_log`: the
        log is for a person at a terminal."""
        self.directory = directory
        self.settings = settings
        self.token = token
        self.started = datetime.now(UTC)
        self.work_available = threading.Event()
        """Set when a run may be waiting for a worker."""
        self.repeat_available = threading.Event()
        """Set when a repeat may be waiting."""
        self.on_host = on_host
        self.plain_log = plain_log
        self.stopping = threading.Event()
        """Set when the server shuts down: long-running requests check it and end."""
        self.feeds = Feeds()
        """The runs and logs that clients follow."""
        self.backend: Backend | None = None
        """The back end of notebooks, TensorBoards and volumes; None: there is none."""
        self.spawner_file = directory.path / SPAWNER_FILE
        """The administrator's defaults of the notebook form; it need not exist."""
        self._idle: list[LocalProject] = []

    def workloads(self) -> Backend:
        """The back end of notebooks, TensorBoards and volumes."""
        if self.backend is None:
            raise NotFound(
                "this server does not run notebooks, TensorBoards or volumes", hint="clew up"
            )
        return self.backend

    @cached_property
    def spawner(self) -> SpawnerConfig:
        """The defaults of the notebook form. Call it only if there is a back end."""
        return SpawnerConfig(self.spawner_file, bundled=self.workloads().kind)

    @contextmanager
    def project(self, may_read: MayRead | None = None) -> Iterator[LocalProject]:
        """Borrow an open project for one request, whose caller may read these namespaces of the
        cluster (`namespace_access`).

        After a failure of the server, such as a lost database, the project and all idle ones are
        closed, since they may share the cause; after bad input they can be used again.
        """
        try:
            project = self._idle.pop()
            project._recover()
        except IndexError:
            project = LocalProject(
                self.directory, self.settings, environ={}
            )  # no variable of the server reaches a repeat
        project.restrict(may_read)
        try:
            yield project
        except ClewError as error:
            if error.http_status < HTTPStatus.INTERNAL_SERVER_ERROR:
                self._idle.append(project)
            else:
                project.close()
                self.close()
            raise
        except BaseException:
            project.close()
            raise
        self._idle.append(project)

    @contextmanager
    def graph(self) -> Iterator[Graph]:
        """Borrow the database of the project."""
        with self.project() as project:
            yield project.graph

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
