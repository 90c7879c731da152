"""The project on the server that CLEW_SERVER names.

Only what happens on this machine is done here: a command runs and is recorded in the project of
the current directory, files are read and written here. The server answers all else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from msgspec import structs

from clew import project_directory as directories
from clew.api.delivery.http_client import Server, connect_server
from clew.api.executions import Execution, ExecutionList, Outcome
from clew.api.local.project import LocalProject, open_local_project
from clew.api.parameter_types import Progress, Say, StrPath, ignore_message, ignore_progress
from clew.api.project import Project
from clew.api.remote import downloads
from clew.api.remote.client import API, Client
from clew.api.remote.messages import ConfirmCommand, RepeatCommand, SentFile
from clew.api.repeats import Repeated
from clew.documents.comparisons.differences import ExecutionDiff, PodDiff
from clew.documents.executions import repeats
from clew.documents.executions.execution_list import RemovedExecutions
from clew.documents.executions.push_pull import Transfer
from clew.documents.executions.summary import ExecutionSummary
from clew.documents.files.checkouts import Checkout, CheckoutStatus
from clew.documents.files.recreations import Recreated
from clew.documents.files.versions import Restored, Version
from clew.documents.ids import Uid
from clew.documents.lineage.lineage import Direction, Lineage
from clew.documents.project.maintenance import Check, Reclaimed, Rule, Rules
from clew.documents.project.notes import Note, Notes
from clew.errors import NoProject, UsageError
from clew.redaction import CREDENTIALS
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.api.pods import Pods
    from clew.api.remote.pipelines import RemotePipelines
    from clew.documents.project.status import ProjectStatus

_MAINTENANCE = 6 * 3600.0
"""Seconds in which the server must check or sweep even a large store."""


def open_remote_project(settings: Settings) -> RemoteProject:
    """Open the project of the server; deliver first what is still unsent here."""
    here = directories.find_here(settings)
    if here is not None and here.unsent.is_dir() and any(here.unsent.iterdir()):
        from clew.api.delivery.delivery import deliver

        with suppress(OSError), LocalProject(here, settings) as project:
            deliver(project, connect_server(settings, here.token)).log_failures(here)
    return RemoteProject(connect_server(settings, here.token if here else None), settings)


class RemoteProject(Project):
    """See `clew.api.project.Project`."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.client = Client(server, settings)
        self.unrecovered = {}

    @property
    def root(self) -> Path:
        return self.client.root

    @property
    def uid(self) -> Uid:
        return self.client.uid

    def __repr__(self) -> str:
        return f"RemoteProject({self.client.server.url!r})"

    @property
    def pipelines(self) -> RemotePipelines:
        from clew.api.remote.pipelines import RemotePipelines

        return RemotePipelines(self.client)

    @property
    def pods(self) -> Pods:
        from clew.api.remote.pod_record import open_pods

        return open_pods(self.client, self.chunks)

    def close(self) -> None:
        self.client.server.hang_up()

    # -- recording and repeating

    def run(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        content: bool = True,
        exclude: Iterable[str] = (),
        pin: Iterable[str] = (),
        progress: Progress = ignore_progress,
    ) -> Outcome:
        """Run and record here, in the project of the current directory, and send the record."""
        settings = self.client.settings
        try:
            here = open_local_project(settings)
        except NoProject:
            here = LocalProject(directories.init(Path.cwd(), settings), settings)
        with here:
            return here.run(
                command, name=name, content=content, exclude=exclude, pin=pin, progress=progress
            )

    def give_secrets(self, values: Mapping[str, str]) -> None:
        self.client.given_secrets.update(values)

    def repeat(
        self,
        id: str,  # noqa: A002
        *,
        parameters: Mapping[int, str] | None = None,
        network: bool = False,
        gpu: bool = False,
        incremental: bool = False,
        keep: StrPath | None = None,
        quiet: bool = True,
        say: Say = ignore_message,
    ) -> Repeated:
        """Repeat on the server; upload the files of this machine that the parameters name."""
        from clew.api.local.repeat import may_import
        from clew.replay.repeat.parameters import list_possible_files

        downloads.check_new_directory(keep)
        words = dict(parameters or {})
        named = list_possible_files(words.values())
        brought = [word for word in named if may_import(Path(word), CREDENTIALS, say)]
        files, transfer = self._upload(brought)
        command = RepeatCommand(
            id=id,
            parameters=words,
            files=files,
            network=network,
            gpu=gpu,
            incremental=incremental,
            quiet=quiet,
            secrets=self.client.given_secrets,
        )
        document = downloads.run_command(
            self.client, command, repeats.Repeated, say, transfer=transfer
        )
        if keep is not None:
            downloads.download_outputs(self.client, document.execution.uid, Path(fspath(keep)))
        return self._as_repeated(document)

    def _upload(self, paths: Sequence[str]) -> tuple[dict[str, SentFile], str | None]:
        """Send files to the server; return their metadata by path, and the id of the transfer."""
        if not paths:
            return {}, None
        from clew.api.local.repeat import store_file
        from clew.api.remote import content_transfer

        with content_transfer.open_transfer_store(self.client.settings) as store:
            files = {path: SentFile.of(store_file(store, Path(path))) for path in paths}
            digests = [file.digest for file in files.values()]
            return files, content_transfer.send(self.client.server, store, digests)

    def checkout(self, id: str, to: StrPath | None = None) -> Checkout:  # noqa: A002
        from clew.api.remote.checkouts import checkout

        return checkout(self.client, id, None if to is None else Path(fspath(to)))

    def checkout_status(self, folder: StrPath | None = None) -> CheckoutStatus:
        from clew.api.remote.checkouts import status

        return status(self.client, None if folder is None else Path(fspath(folder)))

    def commit(
        self,
        message: str | None = None,
        *,
        folder: StrPath | None = None,
        network: bool = False,
        gpu: bool = False,
        quiet: bool = True,
        say: Say = ignore_message,
    ) -> Repeated:
        """Upload the changed files, and run the execution again on the server."""
        from clew.api.remote.checkouts import commit

        document = commit(
            self.client,
            None if folder is None else Path(fspath(folder)),
            message=message,
            network=network,
            gpu=gpu,
            quiet=quiet,
            say=say,
        )
        return self._as_repeated(document)

    def recreate(
        self,
        target: str,
        *,
        to: StrPath | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
        network: bool = False,
        gpu: bool = False,
        say: Say = ignore_message,
    ) -> Recreated:
        from clew.api.remote.recreate import recreate

        return recreate(
            self.client,
            target,
            to=None if to is None else fspath(to),
            overwrite=overwrite,
            dry_run=dry_run,
            network=network,
            gpu=gpu,
            say=say,
        )

    def diff(self, a: str, b: str, *, confirm: bool = False) -> ExecutionDiff | PodDiff:
        if confirm:
            command = ConfirmCommand(a, b, self.client.given_secrets)
            return downloads.run_command(self.client, command, ExecutionDiff, ignore_message)
        return self.client.diff(a, b)

    # -- queries

    def executions(self) -> list[Execution]:
        return self.client.executions()

    def select(
        self,
        filters: Iterable[str] = (),
        *,
        since: datetime | None = None,
        limit: int | None = None,
        workers: bool = False,
    ) -> ExecutionList:
        return self.client.select(filters, since=since, limit=limit, workers=workers)

    def execution(self, id: str) -> Execution:  # noqa: A002
        return self.client.execution(id)

    def show(self, id: str, *, detail: bool = False) -> ExecutionSummary:  # noqa: A002
        return self.client.show(id, detail=detail)

    def lineage(
        self,
        target: str,
        *,
        direction: Direction = "up",
        depth: int | None = None,
        everything: bool = False,
        as_of: datetime | None = None,
    ) -> Lineage:
        if direction not in ("up", "down"):
            raise UsageError(f"the direction of a lineage is up or down, not {direction!r}")
        return self.client.query_target(
            "lineage",
            Lineage,
            target,
            direction=direction,
            depth=depth,
            everything=everything,
            as_of=as_of,
        )

    def versions(self, path: StrPath) -> list[Version]:
        from clew.api.remote.versions import list_versions

        return list_versions(self.client, os.fsencode(path))

    def rules(self) -> list[Rule]:
        return [*self.client.get("rules", Rules).rules]

    # -- contents

    def chunks(self, version: str) -> Iterator[bytes]:
        from clew.api.remote.versions import read_chunks

        return read_chunks(self.client, version)

    def restore(
        self,
        version: str,
        *,
        to: StrPath | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        from clew.api.remote.versions import restore

        path = None if to is None else fspath(to)
        return restore(self.client, version, to=path, overwrite=overwrite, dry_run=dry_run)

    # -- notes

    def note(self, target: str, **remarks: str) -> list[Note]:
        return [*self.client.query_target("note", Notes, target, remarks=remarks).notes]

    def tag(self, id: str, *names: str, remove: Iterable[str] = ()) -> list[str]:  # noqa: A002
        return self.client.tag(id, names, remove)

    # -- exports

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        path = f"{API}/{self.client.execution_path(id)}/reports/{quote(kind, safe='')}"
        with self.client.server.open("GET", path) as answer:
            return answer.whole().decode(errors="surrogateescape")

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: StrPath | BinaryIO | None = None,
        say: Say = ignore_message,
    ) -> bytes | Path | None:
        target = Path(fspath(to)) if isinstance(to, str | PathLike) else to
        return downloads.export(self.client, id, format, target, say)

    # -- sharing

    def push(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        sign: bool = True,
        progress: Progress | None = None,
    ) -> Transfer:
        from clew.api.local.remotes.push_pull import push
        from clew.api.remote.share import RemoteEndpoint

        return push(RemoteEndpoint(self.client), fspath(url), ids, progress, sign=sign)

    def bundle(self, ids: Iterable[str], to: StrPath, *, exclude: Iterable[str] = ()) -> Transfer:
        from clew.api.local.remotes.bundle import write_bundle
        from clew.api.remote.share import RemoteEndpoint

        return write_bundle(self, RemoteEndpoint(self.client), [*ids], Path(to), exclude=[*exclude])

    def pull(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Transfer:
        from clew.api.local.remotes.push_pull import pull
        from clew.api.remote.share import RemoteEndpoint

        return pull(RemoteEndpoint(self.client), fspath(url), ids, progress)

    def shared(self, url: StrPath, *, warn: Say | None = None) -> list[dict[str, Any]]:
        from clew.api.local.remotes.push_pull import list_shared
        from clew.api.remote.share import RemoteEndpoint

        return list_shared(RemoteEndpoint(self.client), fspath(url), warn)

    # -- maintenance

    def status(self) -> ProjectStatus:
        from clew.api.remote.status import get_status

        return get_status(self.client)

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        request = {"ids": list(ids), "dry_run": dry_run}
        removed = self.client.post("executions/remove", RemovedExecutions, request)
        return [self.client.as_execution(document) for document in removed.executions]

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        query = {"dry_run": str(dry_run).lower()}
        return self.client.post("gc", Reclaimed, seconds=_MAINTENANCE, **query)

    def fsck(self) -> Check:
        return self.client.post("fsck", Check, seconds=_MAINTENANCE)

    def _as_repeated(self, document: repeats.Repeated) -> Repeated:
        fields = structs.asdict(document)
        return Repeated(**fields | {"execution": self.client.as_execution(document.execution)})
