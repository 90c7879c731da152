"""What every route is given: the project it serves, and whoever must hear of new work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus

from clew.api.local.project import LocalProject
from clew.errors import ClewError
from clew.project_directory import Folder
from clew.prov.graph import Graph
from clew.server.polling_feed import Feeds
from clew.settings import Settings


class Service:
    """One project, served. Safe to use from any thread."""

    def __init__(self, folder: Folder, settings: Settings, token: str) -> None:
        self.folder = folder
        self.settings = settings
        self.token = token
        self.work = threading.Event()
        """Set when there may be something to run."""
        self.on_host = False
        """Whether container components run as processes, without their images."""
        self.stopping = threading.Event()
        """Set when the server ends: long work ends at its next look."""
        self.feeds = Feeds()
        """What is followed while it goes on."""
        self._idle: list[LocalProject] = []

    @contextmanager
    def project(self) -> Iterator[LocalProject]:
        """The project, for one request; one that failed is opened anew for the next. Where the
        database did, those that wait may have lost it as well."""
        try:
            found = self._idle.pop()
            found._recover()
        except IndexError:
            found = LocalProject(self.folder, self.settings, environ={})  # repeats get none of ours
        try:
            yield found
        except ClewError as error:
            if error.http_status < HTTPStatus.INTERNAL_SERVER_ERROR:
                self._idle.append(found)
            else:
                found.close()
                self.close()
            raise
        except BaseException:
            found.close()
            raise
        self._idle.append(found)

    @contextmanager
    def graph(self) -> Iterator[Graph]:
        """The project's database, for what the server itself keeps there."""
        with self.project() as project:
            yield project.graph

    def close(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
