"""The project in a local directory.

Each method converts its arguments and calls the module that does the work. Imports are local so
that a command loads only what it uses: a machine without a compiler can do everything but `exec`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from clew import project_directory
from clew.api.parameter_types import Progress, Say, StrPath, ignore_message, ignore_progress
from clew.api.project import Project
from clew.api.project_context import ProjectState
from clew.errors import NotFound, UsageError
from clew.settings import Settings

if TYPE_CHECKING:
    from datetime import datetime

    from clew.api.executions import Execution, ExecutionList, Outcome
    from clew.api.local.pipelines.pipelines import LocalPipelines
    from clew.api.pods import Pods
    from clew.api.repeats import Repeated
    from clew.documents.comparisons.differences import ExecutionDiff, PodDiff
    from clew.documents.executions import repeats
    from clew.documents.executions.push_pull import Transfer
    from clew.documents.executions.summary import ExecutionSummary
    from clew.documents.files.checkouts import Checkout, CheckoutStatus
    from clew.documents.files.recreations import Recreated
    from clew.documents.files.versions import Restored, Version
    from clew.documents.lineage.lineage import Direction, Lineage
    from clew.documents.project.maintenance import Check, Reclaimed, Rule
    from clew.documents.project.notes import Note
    from clew.documents.project.status import ProjectStatus
    from clew.notebooks.notebook_repeat import RepeatedNotebook


def open_local_project(settings: Settings, path: StrPath | None = None) -> LocalProject:
    """Open the project that contains `path`; without one, the project that CLEW_PROJECT names, or
    the one that contains the current directory."""
    if path is not None:
        found = project_directory.find(
            Path(fspath(path)).resolve(), replace(settings, project=None)
        )
        return LocalProject(found, settings)
    try:
        start = Path.cwd()
    except FileNotFoundError as error:
        if settings.project is None:
            raise NotFound(
                "the current directory no longer exists", hint="cd to a directory that exists"
            ) from error
        start = settings.project
    return LocalProject(project_directory.find(start, settings), settings)


class LocalProject(ProjectState, Project):
    """See `clew.api.project.Project`."""

    def __repr__(self) -> str:
        return f"LocalProject({str(self.root)!r})"

    @property
    def pipelines(self) -> LocalPipelines:
        from clew.api.local.pipelines.pipelines import LocalPipelines

        return LocalPipelines(self)

    @property
    def pods(self) -> Pods:
        from clew.api.local.pod_record import load_state, open_pod_record
        from clew.api.pods import Pods

        return Pods(
            lambda: open_pod_record(self),
            lambda: self.secrets.given,
            self.settings.s3,
            lambda as_of, namespace: load_state(self.graph, as_of, namespace),
        )

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
        from clew.api.local.exec import record_command

        return record_command(
            self,
            command,
            name=name,
            content=content,
            exclude=exclude,
            pin=pin,
            progress=progress,
        )

    def notebook(
        self,
        file: StrPath,
        *,
        incremental: bool = False,
        parameters: Mapping[str, Any] | None = None,
        output: StrPath | None = None,
        python: str | None = None,
    ) -> RepeatedNotebook:
        from clew.notebooks import kernel_spec
        from clew.notebooks.notebook_repeat import repeat_notebook

        return repeat_notebook(
            Path(file),
            python=kernel_spec.find_python(python),
            incremental=incremental,
            parameters=parameters or {},
            output=Path(output) if output is not None else None,
        )

    def give_secrets(self, values: Mapping[str, str]) -> None:
        self.secrets = self.secrets.with_given(values)

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
        from clew.api.local.repeat import repeat

        document = repeat(
            self,
            id,
            parameters=parameters or {},
            network=network,
            gpu=gpu,
            incremental=incremental,
            keep=None if keep is None else Path(fspath(keep)),
            quiet=quiet,
            say=say,
        )
        return self._as_repeated(document)

    def checkout(self, id: str, to: StrPath | None = None) -> Checkout:  # noqa: A002
        from clew.api.local.checkouts import checkout

        return checkout(self, id, None if to is None else Path(fspath(to)))

    def checkout_status(self, folder: StrPath | None = None) -> CheckoutStatus:
        from clew.api.local.checkouts import status

        return status(self, None if folder is None else Path(fspath(folder)))

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
        from clew.api.local.checkouts import commit

        document = commit(
            self,
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
        from clew.api.local.recreation.recreate import recreate

        return recreate(
            self,
            target,
            to=None if to is None else fspath(to),
            overwrite=overwrite,
            dry_run=dry_run,
            network=network,
            gpu=gpu,
            say=say,
        )

    def diff(self, a: str, b: str, *, confirm: bool = False) -> ExecutionDiff | PodDiff:
        from clew.api.local.diff import diff

        return diff(self, a, b, confirm=confirm)

    # -- queries

    def executions(self) -> list[Execution]:
        from clew.api.local.executions import list_executions

        return list_executions(self)

    def select(
        self,
        filters: Iterable[str] = (),
        *,
        since: datetime | None = None,
        limit: int | None = None,
        workers: bool = False,
    ) -> ExecutionList:
        from clew.api.local.executions import select_executions

        return select_executions(self, filters, since=since, limit=limit, workers=workers)

    def execution(self, id: str) -> Execution:  # noqa: A002
        from clew.api.local.executions import find_execution

        return find_execution(self, id)

    def show(self, id: str, *, detail: bool = False) -> ExecutionSummary:  # noqa: A002
        from clew.api.local.executions import show_execution

        return show_execution(self, id, detail=detail)

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
        from clew.api.local.versions import as_of_nanoseconds, find
        from clew.prov.queries.lineage.lineage import trace_lineage

        found = find(self, target, as_of=as_of)
        return trace_lineage(
            self.graph,
            found,
            direction=direction,
            depth=depth,
            everything=everything,
            as_of=as_of_nanoseconds(as_of),
        )

    def versions(self, path: StrPath) -> list[Version]:
        from clew.api.local.versions import versions

        return versions(self, fspath(path))

    def rules(self) -> list[Rule]:
        from clew.documents.project.maintenance import Rule
        from clew.replay.compare.volatile_rules import load_rules

        return [
            Rule(name=rule.name, paths=tuple(rule.paths), what=rule.what)
            for rule in load_rules(self.directory.ignore)
        ]

    # -- contents

    def chunks(self, version: str) -> Iterator[bytes]:
        from clew.api.local.versions import chunks

        return chunks(self, version)

    def restore(
        self,
        version: str,
        *,
        to: StrPath | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        from clew.api.local.versions import restore

        path = None if to is None else fspath(to)
        return restore(self, version, to=path, overwrite=overwrite, dry_run=dry_run)

    # -- notes

    def note(self, target: str, **remarks: str) -> list[Note]:
        from clew.api.local.notes import note

        return note(self, target, remarks)

    def tag(self, id: str, *names: str, remove: Iterable[str] = ()) -> list[str]:  # noqa: A002
        from clew.api.local.notes import tag

        return tag(self, id, names, remove)

    # -- exports

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        from clew.api.local.export import report

        return report(self, id, kind)

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: StrPath | BinaryIO | None = None,
        say: Say = ignore_message,
    ) -> bytes | Path | None:
        from clew.api.local.export import export

        target = Path(fspath(to)) if isinstance(to, str | PathLike) else to
        return export(self, id, format=format, to=target, say=say)

    # -- sharing

    def push(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        sign: bool = True,
        progress: Progress | None = None,
    ) -> Transfer:
        from clew.api.local.remotes.push_pull import LocalEndpoint, push

        return push(LocalEndpoint(self), fspath(url), ids, progress, sign=sign)

    def bundle(self, ids: Iterable[str], to: StrPath, *, exclude: Iterable[str] = ()) -> Transfer:
        from clew.api.local.remotes.bundle import write_bundle
        from clew.api.local.remotes.push_pull import LocalEndpoint
        from clew.prov.queries.pipelines.runs import list_run_executions

        found = [one for text in ids for one in list_run_executions(self.graph, text) or (text,)]
        return write_bundle(self, LocalEndpoint(self), found, Path(to), exclude=[*exclude])

    def pull(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Transfer:
        from clew.api.local.remotes.push_pull import LocalEndpoint, pull

        return pull(LocalEndpoint(self), fspath(url), ids, progress)

    def shared(self, url: StrPath, *, warn: Say | None = None) -> list[dict[str, Any]]:
        from clew.api.local.remotes.push_pull import LocalEndpoint, list_shared

        return list_shared(LocalEndpoint(self), fspath(url), warn)

    # -- maintenance

    def status(self) -> ProjectStatus:
        from clew.api.local.status import get_status

        return get_status(self)

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        from clew.api.local.maintenance import remove

        return remove(self, ids, dry_run=dry_run)

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        from clew.api.local.maintenance import gc

        return gc(self, dry_run=dry_run)

    def fsck(self) -> Check:
        from clew.api.local.maintenance import fsck

        return fsck(self)

    def _as_repeated(self, document: repeats.Repeated) -> Repeated:
        from msgspec import structs

        from clew.api.local.executions import as_execution
        from clew.api.repeats import Repeated

        fields = structs.asdict(document)
        return Repeated(**fields | {"execution": as_execution(self, document.execution)})
