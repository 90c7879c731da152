"""A project, opened: the facade that the command line and Python programs share.

What it holds is asked as of any `Archive`; work goes to `run`, sharing and upkeep to modules of
their own: this one only knows which is asked what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.api.local.archive import Archive, Place
from clew.errors import Busy, UsageError
from clew.project_directory import Folder
from clew.redaction import CREDENTIALS
from clew.replay.repeat.secret_values import SecretValues
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.api.local.pipelines.pipelines import Pipelines
    from clew.api.local.share import End
    from clew.api.results import (
        Check,
        Checkout,
        Execution,
        Outcome,
        Reclaimed,
        Recreated,
        Repeated,
        Status,
        Transfer,
    )


class Project(Archive):
    """One project: record, ask, restore, keep in order. Use it in a `with`, or `close` it."""

    def __init__(
        self, folder: Folder, settings: Settings, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        """`environ`: the caller's variables, for secrets of records made here."""
        super().__init__(folder, settings)
        self.secrets = SecretValues(
            environ=environ,
            credentials=(*CREDENTIALS, *folder.credentials),
            own_files=True,
        )

    def give_secrets(self, values: Mapping[str, str]) -> None:
        """Offer values for the secrets that a repeated record does not hold: by the name of a
        variable, or the path of a credential file (its bytes decoded with `surrogateescape`).

        A record made elsewhere gets no other variables of this process, and no other files. Values
        that a repeat was given are masked in what it prints and in its own record.
        """
        self.secrets = self.secrets.with_given(values)

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
        from clew.api.remote import unsent
        from clew.run.launch.pins import Pins
        from clew.run.recorder import execute

        sends = self.settings.server is not None
        outcome = execute(
            self.directory,
            self.settings,
            tuple(command),
            name=name,
            content=content,
            exclude=tuple(exclude),
            pins=Pins.chosen(pin),
            begun=lambda uid: unsent.mark(self.directory, uid) if sends else None,
        )
        if outcome.warning is not None:
            from clew import log

            log.write_error(self.directory, outcome.warning)
        there: dict[str, Any] = {}
        if sends and outcome.joined is None:
            from clew.api.remote.delivery import delivered

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
        gpu: bool = False,
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
        return self._repeated(document)

    def checkout(self, id: str, to: Place | None = None) -> Checkout:  # noqa: A002
        """Lay out the files that an execution found, to be changed.

        `to` is a new or empty folder, or a checkout without changes, which is then switched;
        without it, a folder here that is called as the execution is.
        """
        from clew.api.local.checkouts import checkout
        from clew.api.results import Checkout

        return Checkout.read(checkout(self, id, None if to is None else Path(fspath(to))))

    def status(self, folder: Place | None = None) -> Status:
        """What was changed in the checkout that `folder`, or the current one, lies in."""
        from clew.api.local.checkouts import status
        from clew.api.results import Status

        return Status.read(status(self, None if folder is None else Path(fspath(folder))))

    def commit(
        self,
        message: str | None = None,
        *,
        folder: Place | None = None,
        network: bool = False,
        gpu: bool = False,
        quiet: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Repeated:
        """Run a checked-out execution again with what was changed in the checkout.

        The new execution has the one that was checked out as its parent. If it ends well, the
        checkout is one of it from then on. Where nothing was changed nothing runs: the answer's
        `execution` is then the one that was checked out.
        """
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
        return self._repeated(document)

    @property
    def pipelines(self) -> Pipelines:
        """Kubeflow pipelines: running them, and asking how runs went."""
        from clew.api.local.pipelines.pipelines import Pipelines

        return Pipelines(self)

    def recreate(
        self,
        target: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
        network: bool = False,
        gpu: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> Recreated:
        """Make a file again from its lineage: the fewest executions are run again, in order.

        What is stored, or lies on disk as it was, is taken. `target` names a version, or a file
        that is there no more. Where it is put, and what may be overwritten, is as in `restore`.
        """
        from clew.api.local.recreate import recreate
        from clew.api.results import Recreated

        document = recreate(
            self,
            target,
            to=None if to is None else fspath(to),
            overwrite=overwrite,
            dry_run=dry_run,
            network=network,
            gpu=gpu,
            say=say,
        )
        return Recreated.read(document)

    def diff(self, a: str, b: str, *, confirm: bool = False) -> dict[str, Any]:
        """The document of `clew diff --json`: all in which execution `b` differs from `a`.

        With `confirm` the process that diverged first is run again, to see what made it.
        """
        from clew.api.local.diff import diff

        return diff(self, a, b, confirm=confirm)

    # -- sharing

    def push(
        self,
        url: Place,
        ids: Iterable[str] | None = None,
        *,
        sign: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> Transfer:
        """Send executions to a folder or to `s3://bucket/prefix`: all that are not there, or `ids`.

        Only chunks that are missing there travel, and an execution is there whole or not at all.
        What was recorded here is signed with the user's key if there is one (`clew key`), unless
        `sign` is false. `progress` is told the bytes that have travelled, and of how many.
        """
        from clew.api.local.share import push

        return push(self._end, fspath(url), ids, progress, sign=sign)

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
        from clew.api.local.share import pull

        return pull(self._end, fspath(url), ids, progress)

    def shared(
        self, url: Place, *, warn: Callable[[str], None] | None = None
    ) -> list[dict[str, Any]]:
        """The executions at `url`, oldest first, as the pusher has them; `here`: their id here.

        `warn` gets a sentence for each damaged document, which is left out.
        """
        from clew.api.local.share import shared

        return shared(self._end, fspath(url), warn)

    # -- keeping in order

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        """Forget executions; `gc` then frees their bytes. None is forgotten if one is unknown."""
        from clew.prov.queries.formats import execution_id
        from clew.prov.queries.inherited_reads import heirs

        doomed = {found.uid: found for found in map(self.execution, ids)}
        for execution in doomed.values():
            if execution.state == "running":
                raise Busy(f"{execution.id} is still running", hint="wait for its end, or stop it")
        if left := heirs(self.graph, doomed):
            names = " ".join(execution_id(number) for _, number in left)
            raise UsageError(f"without it {names} would not be whole", hint=f"clew rm {names}, too")
        if not dry_run:
            from clew import log
            from clew.api.local.maintenance import in_reserve
            from clew.run.recovery import discard_after

            with in_reserve(self):
                for uid in doomed:
                    with discard_after(self.directory, uid):
                        self.graph.remove(uid)

            gone = ", ".join(f"{found.id} ({uid})" for uid, found in doomed.items())
            log.write(self.directory, "info", f"removed {gone}")
        return list(doomed.values())

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        """Free the bytes that no execution has any more; running ones keep theirs."""
        from clew.api.local.maintenance import gc

        return gc(self, dry_run=dry_run)

    def fsck(self) -> Check:
        """Prove that every stored byte is what it says, and that all the graph names is there."""
        from clew.api.local.maintenance import fsck

        return fsck(self)

    # -- for this package

    @property
    def _end(self) -> End:
        from clew.api.local.share import Own

        return Own(self)

    def kept_digests(self, execution: str, digests: set[str]) -> set[str]:
        """Those of some contents that this execution, or else any, has."""
        from clew.api.local.checkouts import kept

        return kept(self, execution, digests)

    def _repeated(self, document: dict[str, Any]) -> Repeated:
        from clew.api.results import Repeated

        return Repeated.read(document, self._execution(document["execution"]))
