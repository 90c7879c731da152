"""The open state of a local project: its directory, settings, graph and secrets.

The modules of `api.local` and `api.delivery` take a `ProjectState`, not a `LocalProject`, so that
`LocalProject` can import them all without an import cycle.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from clew.documents.ids import Digest, Uid
from clew.project_directory import ProjectDirectory, is_accepted
from clew.redaction import CREDENTIALS
from clew.replay.repeat.secret_values import SecretValues
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.prov.graph import Graph, MayRead
    from clew.store.archive_members import Members


class ProjectState:
    """The graph is opened on first use and stays open until `close`."""

    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        *,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`environ`: the caller's variables; repeats of records made here take secrets from it."""
        self.directory = directory
        self.settings = settings
        self.secrets = SecretValues(
            environ=environ,
            credentials=(*CREDENTIALS, *directory.credentials),
            own_files=True,
        )
        self.unrecovered: dict[str, str] = {}
        self._may_read: MayRead | None = None

    def restrict(self, may_read: MayRead | None) -> None:
        """From now on, answer a caller who may read these namespaces of the cluster; None: all."""
        self._may_read = may_read
        if (graph := self.__dict__.get("graph")) is not None:
            graph.restrict(may_read)

    @property
    def root(self) -> Path:
        return self.directory.root

    @property
    def uid(self) -> Uid:
        return self.directory.uid

    @cached_property
    def graph(self) -> Graph:
        """The project's graph. Opening it completes the records of killed executions."""
        from clew.db import connect
        from clew.prov.graph import Graph

        self._recover()
        connection = connect(self.directory.graph, address=self.settings.graph)
        return Graph(
            connection,
            self.directory.uid,
            signers=self.settings.config,
            list_members=self._list_members,
            foreign=not is_accepted(self.directory, self.settings),
            may_read=self._may_read,
        )

    def _list_members(self, digest: Digest) -> Members:
        from clew.store.archive_members import list_members  # few projects have archives

        return list_members(self.directory.store, self.directory.cache, digest)

    def close(self) -> None:
        graph = self.__dict__.pop("graph", None)
        if graph is not None:
            graph.connection.close()

    def is_alive(self, uid: Uid) -> bool:
        """Whether the process that records this execution or run still holds its lock."""
        from clew.run.spool_directories import is_alive

        return is_alive(self.directory, uid)

    def _recover(self) -> None:
        from clew.run.spool_directories import list_killed

        self.unrecovered = {}
        if list_killed(self.directory):
            from clew.run.recovery import recover

            failures = recover(self.directory, self.settings)
            self.unrecovered = {failure.uid: failure.why for failure in failures}
