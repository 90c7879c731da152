"""A project, opened: the facade that the command line and Python programs share.

Questions go to the graph, bytes to the store, work to `run`; this module only knows which
is asked what. A `Project` opens the graph when it is first needed and closes it with itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from clew import folder as folders
from clew import settings as environment
from clew.errors import Busy, NotFound, UsageError
from clew.folder import Folder
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.api.pipelines import Pipelines
    from clew.api.records import (
        Check,
        Checkout,
        Execution,
        Lineage,
        Outcome,
        Reclaimed,
        Recreated,
        Repeated,
        Restored,
        Status,
        Transfer,
        Version,
    )
    from clew.api.sharing import End
    from clew.prov.graph import Graph

Place = str | PathLike[str]


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


class Project:
    """One project: record, ask, restore, keep in order. Use it in a `with`, or `close` it."""

    def __init__(self, folder: Folder, settings: Settings) -> None:
        self._folder = folder
        self._settings = settings
        self._environ: Mapping[str, str] = os.environ
        """Where variables are taken from that were not recorded, when something is run again."""

    @property
    def root(self) -> Path:
        """The folder that holds `.clew/`."""
        return self._folder.root

    @property
    def uid(self) -> str:
        """The project's name anywhere."""
        return self._folder.uid

    def __repr__(self) -> str:
        return f"Project({str(self.root)!r})"

    def __enter__(self) -> Project:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; a later question opens it again."""
        graph = self.__dict__.pop("_graph", None)
        if graph is not None:
            graph.connection.close()

    # -- doing work

    def exec(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        content: bool = True,
        exclude: Iterable[str] = (),
        pin: Iterable[str] = (),
    ) -> Execution:
        """Run a command, record it, and wait for its end.

        The command has this process's input, output and working directory. `name` may stand for
        the execution's id from then on; `content=False` keeps digests only, as does `exclude`
        (globs) for the files it matches. `pin` names what a repeat shall find the same: `clock`,
        `random`. A command that fails is no error: see `status`.
        """
        return self.run(command, name=name, content=content, exclude=exclude, pin=pin).execution

    def run(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        content: bool = True,
        exclude: Iterable[str] = (),
        pin: Iterable[str] = (),
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Outcome:
        """As `exec`; the answer also says with which status a caller should exit, and what became
        of sending it to a server: `progress` is told the bytes that have travelled."""
        if isinstance(command, str) or not command:
            raise UsageError(
                "a command is a list of words: the program, then its arguments",
                hint='project.exec(["sh", "-c", "…"]) runs a line of shell',
            )
        from clew.api.executions import Outcome
        from clew.api.remote import waiting
        from clew.run.executing import execute
        from clew.run.pins import Pins

        sends = self._settings.server is not None
        outcome = execute(
            self._folder,
            self._settings,
            tuple(command),
            name=name,
            content=content,
            exclude=tuple(exclude),
            pins=Pins.chosen(pin),
            begun=lambda uid: waiting.mark(self._folder, uid) if sends else None,
        )
        there: dict[str, Any] = {}
        if sends and outcome.joined is None:
            from clew.api.remote.sending import delivered

            there = delivered(self, outcome.execution["uid"], progress)
        return Outcome(
            execution=self._execution(outcome.execution),
            status=outcome.status,
            joined=outcome.joined,
            warning=outcome.warning,
            **there,
        )

    def repeat(
        self,
        id: str,  # noqa: A002
        *,
        parameters: Mapping[int, str] | None = None,
        network: bool = False,
        incremental: bool = False,
        keep: Place | None = None,
        quiet: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Repeated:
        """Run an execution again in isolation, record that, and compare.

        `parameters` replaces words of the command, counted from 0; the result is then a
        modification, else a repetition. `keep` names a new folder for what it left. `quiet`: its
        output is only kept, not shown. `say` is told beforehand what cannot be as it was.
        """
        from clew.api.repeating import repeat

        document = repeat(
            self,
            id,
            parameters=parameters or {},
            network=network,
            incremental=incremental,
            keep=None if keep is None else Path(fspath(keep)),
            quiet=quiet,
            say=say,
        )
        return self._repeated(document)

    def checkout(self, id: str, to: Place | None = None) -> Checkout:  # noqa: A002
        """Lay out the files that an execution found, to be changed.

        `to` is a new or empty folder, or a checkout without changes, which is then switched;
        without it, a folder here that is called as the execution is.
        """
        from clew.api.checkouts import checkout
        from clew.api.records import Checkout

        return Checkout.read(checkout(self, id, None if to is None else Path(fspath(to))))

    def status(self, folder: Place | None = None) -> Status:
        """What was changed in the checkout that `folder`, or the current one, lies in."""
        from clew.api.checkouts import status
        from clew.api.records import Status

        return Status.read(status(self, None if folder is None else Path(fspath(folder))))

    def commit(
        self,
        message: str | None = None,
        *,
        folder: Place | None = None,
        network: bool = False,
        quiet: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Repeated:
        """Run a checked-out execution again with what was changed in the checkout.

        The new execution has the one that was checked out as its parent. If it ends well, the
        checkout is one of it from then on. Where nothing was changed nothing runs: the answer's
        `execution` is then the one that was checked out.
        """
        from clew.api.checkouts import commit

        document = commit(
            self,
            None if folder is None else Path(fspath(folder)),
            message=message,
            network=network,
            quiet=quiet,
            say=say,
        )
        return self._repeated(document)

    @property
    def pipelines(self) -> Pipelines:
        """Kubeflow pipelines: running them, and asking how runs went."""
        from clew.api.pipelines import Pipelines

        return Pipelines(self)

    # -- asking

    def executions(self) -> list[Execution]:
        """All executions, oldest first."""
        from clew.prov.questions.executions import executions

        return [self._execution(found) for found in executions(self._graph, alive=self._alive)]

    def execution(self, id: str) -> Execution:  # noqa: A002 (the word users know it by)
        """One execution, by id (`e2`), name or uid."""
        from clew.prov.questions.executions import execution

        return self._execution(execution(self._graph, id, alive=self._alive))

    def show(self, id: str, *, detail: bool = False) -> dict[str, Any]:  # noqa: A002
        """The document of `clew show --json`; with `detail` also every file and network peer."""
        from clew.prov.questions.shows import show

        return show(self._graph, id, alive=self._alive, detail=detail)

    def lineage(
        self,
        target: str,
        *,
        direction: str = "up",
        depth: int | None = None,
        everything: bool = False,
    ) -> Lineage:
        """Where `target` came from (`up`), or what it went into (`down`), across executions.

        A target is a path, a version (`e2:PATH`), a process (`e2.p3`), an execution, or a digest.
        Files of installed packages are counted, not named, unless `everything` is asked for.
        """
        if direction not in ("up", "down"):
            raise UsageError(f"a lineage goes up or down, not {direction!r}")
        from clew.api.records import Lineage
        from clew.api.versions import find
        from clew.prov.questions.lineage import lineage

        found = find(self, target)
        return Lineage.read(
            lineage(self._graph, found, direction=direction, depth=depth, everything=everything)
        )

    def versions(self, path: Place) -> list[Version]:
        """Every version of the file at `path` that was recorded, oldest first."""
        from clew.api.versions import versions

        return versions(self, fspath(path))

    def diff(self, a: str, b: str, *, confirm: bool = False) -> dict[str, Any]:
        """The document of `clew diff --json`: all in which execution `b` differs from `a`.

        With `confirm` the process that diverged first is run again, to see what made it.
        """
        from clew.api.comparing import diff

        return diff(self, a, b, confirm=confirm)

    def rules(self) -> list[dict[str, Any]]:
        """Which differences do not matter: `{name, paths, what}`, this project's own first."""
        from clew.replay.volatile import rules

        known = rules(self._folder.ignore)
        return [{"name": r.name, "paths": list(r.paths), "what": r.what} for r in known]

    # -- bytes

    def read(self, version: str) -> bytes:
        """The bytes of a version."""
        return b"".join(self.chunks(version))

    def chunks(self, version: str) -> Iterator[bytes]:
        """The bytes of a version, piece by piece: no matter how large it is."""
        from clew.api.versions import chunks

        return chunks(self, version)

    def restore(
        self,
        version: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        """Bring a version back, to where it was or to the file or folder `to`.

        A different file in that place whose content is stored nowhere would be lost: then it
        is NotAllowed, unless `overwrite` is given.
        """
        from clew.api.versions import restore

        place = None if to is None else fspath(to)
        return restore(self, version, to=place, overwrite=overwrite, dry_run=dry_run)

    def recreate(
        self,
        target: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
        network: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> Recreated:
        """Make a file again from its lineage: the fewest executions are run again, in order.

        What is stored, or lies on disk as it was, is taken. `target` names a version, or a file
        that is there no more. Where it is put, and what may be overwritten, is as in `restore`.
        """
        from clew.api.records import Recreated
        from clew.api.recreating import recreate

        document = recreate(
            self,
            target,
            to=None if to is None else fspath(to),
            overwrite=overwrite,
            dry_run=dry_run,
            network=network,
            say=say,
        )
        return Recreated.read(document)

    # -- what no witness can see

    def note(self, target: str, **remarks: str) -> list[dict[str, Any]]:
        """Add remarks to an execution, a process, or a version; all of its notes are returned."""
        from clew.api.remarks import note

        return note(self, target, remarks)

    def notes(self, target: str) -> list[dict[str, Any]]:
        """What was noted about a target, in order."""
        return self.note(target)

    def source(self, path: Place, url: str) -> None:
        """Say that the file at `path`, as it is now, was taken from `url`."""
        self.note(fspath(path), source=url)

    # -- for others

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        """An execution's `requirements` (for pip), system `packages`, or `readme` section."""
        from clew.api.exports import report

        return report(self, id, kind)

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: Place | BinaryIO | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> bytes | Path | None:
        """An execution as `prov-json`, `prov-n`, `ro-crate`, `oci` or `dockerfile`.

        Without `to` a PROV document is returned; with it, it is written there, to a path or an
        open file, as an OCI image is. An RO-Crate and a Dockerfile with its files are folders:
        `to` must name one that does not exist yet. `say` is told, before anything is written,
        what an image or a Dockerfile cannot hold.
        """
        from clew.api.exports import export

        place = Path(fspath(to)) if isinstance(to, str | PathLike) else to
        return export(self, id, format=format, to=place, say=say)

    # -- sharing

    def push(
        self,
        url: Place,
        ids: Iterable[str] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Transfer:
        """Send executions to a folder or to `s3://bucket/prefix`: all that are not there, or `ids`.

        Only chunks that are missing there travel, and an execution is there whole or not at all.
        `progress` is told the bytes that have travelled, and of how many.
        """
        from clew.api.sharing import push

        return push(self._end, fspath(url), ids, progress)

    def pull(
        self,
        url: Place,
        ids: Iterable[str] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> Transfer:
        """Fetch executions from where they were pushed: all that are not here, or `ids`.

        An id is a uid (or its beginning), a name, or the number the pusher has it by. Here they
        get numbers of their own, in the order they were made.
        """
        from clew.api.sharing import pull

        return pull(self._end, fspath(url), ids, progress)

    def shared(self, url: Place) -> list[dict[str, Any]]:
        """The executions at `url`, oldest first, as the pusher has them; `here`: their id here."""
        from clew.api.sharing import shared

        return shared(self._end, fspath(url))

    # -- keeping in order

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        """Forget executions; `gc` then frees their bytes. None is forgotten if one is unknown."""
        from clew.prov.questions.inheriting import heirs
        from clew.prov.questions.shapes import execution_id

        doomed = {found.uid: found for found in map(self.execution, ids)}
        for execution in doomed.values():
            if execution.state == "running":
                raise Busy(f"{execution.id} is still running", hint="wait for its end, or stop it")
        if left := heirs(self._graph, doomed):
            names = " ".join(execution_id(number) for _, number in left)
            raise UsageError(f"without it {names} would not be whole", hint=f"clew rm {names}, too")
        if not dry_run:
            from clew.run.recovering import discarding

            for uid in doomed:
                with discarding(self._folder, uid):
                    self._graph.remove(uid)
        return list(doomed.values())

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        """Free the bytes that no execution has any more; running ones keep theirs."""
        from clew.api.upkeep import gc

        return gc(self, dry_run=dry_run)

    def fsck(self) -> Check:
        """Prove that every stored byte is what it says, and that all the graph names is there."""
        from clew.api.upkeep import fsck

        return fsck(self)

    # -- for this package

    @cached_property
    def _graph(self) -> Graph:
        from clew.db import connect
        from clew.prov.graph import Graph

        connection = connect(self._folder.graph, address=self._settings.graph)
        return Graph(connection, self._folder.uid)

    @property
    def _end(self) -> End:
        from clew.api.sharing import Own

        return Own(self)

    def _kept(self, execution: str, digests: set[str]) -> set[str]:
        """Those of some contents that this execution, or else any, has."""
        from clew.api.checkouts import kept

        return kept(self, execution, digests)

    def _alive(self, uid: str) -> bool:
        from clew.run.locks import alive

        return alive(self._folder, uid)

    def _repeated(self, document: dict[str, Any]) -> Repeated:
        from clew.api.records import Repeated

        return Repeated.read(document, self._execution(document["execution"]))

    def _execution(self, document: dict[str, Any]) -> Execution:
        from clew.api.executions import Execution

        return Execution.read(document, ask=lambda uid: self.show(uid, detail=True))
