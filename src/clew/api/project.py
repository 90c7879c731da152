"""The public interface of a project: what `clew.open()` returns.

`LocalProject` (in `api.local`) and `RemoteProject` (in `api.remote`) implement it and share no
state. The methods that are complete here only call other methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

from clew.api.parameter_types import Progress, Say, StrPath, ignore_message, ignore_progress
from clew.errors import ClewError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from clew.api.executions import Execution, ExecutionList, Outcome
    from clew.api.pipelines import Pipelines
    from clew.api.pods import Pods
    from clew.api.repeats import Repeated
    from clew.documents.comparisons.differences import ExecutionDiff, PodDiff
    from clew.documents.executions.push_pull import Transfer
    from clew.documents.executions.summary import ExecutionSummary
    from clew.documents.files.checkouts import Checkout, CheckoutStatus
    from clew.documents.files.recreations import Recreated
    from clew.documents.files.versions import Restored, Version
    from clew.documents.ids import Uid
    from clew.documents.lineage.lineage import Direction, Lineage
    from clew.documents.project.maintenance import Check, Reclaimed, Rule
    from clew.documents.project.notes import Note
    from clew.documents.project.status import ProjectStatus
    from clew.notebooks.notebook_repeat import RepeatedNotebook

_ONLY_HERE = "notebooks run on this machine, and are recorded in a project here"
_OPEN_HERE = "clew.open(here=True)"


class Project(Protocol):
    """One project: record, query, restore, share, maintain. Use it in a `with`, or `close` it.

    A project belongs to one thread.
    """

    unrecovered: dict[str, str]
    """By uid, why the record of a killed execution could not be completed."""

    @property
    def root(self) -> Path:
        """The directory that contains `.clew/`."""

    @property
    def uid(self) -> Uid:
        """The project's globally unique id."""

    @property
    def pipelines(self) -> Pipelines:
        """Kubeflow pipelines: run them, and query their runs."""

    @property
    def pods(self) -> Pods:
        """Pods that a cluster's witnesses observed: make again what they made."""

    def close(self) -> None:
        """Close the database or the connection; the next call opens it again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- recording and repeating

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

        The command has this process's input, output and working directory. `name` can be used in
        place of the execution's id. `content=False` keeps digests only, as does `exclude` (globs)
        for the files it matches. `pin` lists what a repeat must reproduce: `clock`, `random`.
        A failed command raises no error: see `status`.
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
        progress: Progress = ignore_progress,
    ) -> Outcome:
        """As `exec`; the `Outcome` also has the exit status for the caller and, where there is a
        server, whether the record arrived there. `progress` reports the upload."""

    def notebook(
        self,
        file: StrPath,
        *,
        incremental: bool = False,
        parameters: Mapping[str, Any] | None = None,
        output: StrPath | None = None,
        python: str | None = None,
    ) -> RepeatedNotebook:
        """Run the cells of a notebook in a new kernel and record each of them.

        `incremental` reuses cells of which nothing changed. `parameters` are variables to set
        first. `output` names a file for the notebook with its new outputs; `python` the interpreter
        that it runs in, which has ipykernel.
        """
        raise UsageError(_ONLY_HERE, hint=_OPEN_HERE)

    def give_secrets(self, values: Mapping[str, str]) -> None:
        """Provide secrets that a repeated record does not contain: by the name of a variable, or
        the path of a credential file (its bytes decoded with `surrogateescape`).

        A record made elsewhere gets no other variables of this process and no other files. A repeat
        masks these values in its output and its record.
        """

    def repeat(
        self,
        id: str,  # noqa: A002 (the word users know it by)
        *,
        parameters: Mapping[int, str] | None = None,
        network: bool = False,
        gpu: bool = False,
        incremental: bool = False,
        keep: StrPath | None = None,
        quiet: bool = True,
        say: Say = ignore_message,
    ) -> Repeated:
        """Run an execution again in isolation, record that, and compare.

        `parameters` replaces words of the command, counted from 0; the result is then a
        modification, else a repetition. `keep` names a new directory for its outputs. `quiet`
        records its output without showing it. `say` receives, before the start, what cannot be
        reproduced.
        """

    def checkout(self, id: str, to: StrPath | None = None) -> Checkout:  # noqa: A002
        """Write the input files of an execution to a directory, to be changed there.

        `to` is a new or empty directory, or a checkout without changes, which is then switched;
        by default a directory here with the execution's name.
        """

    def checkout_status(self, folder: StrPath | None = None) -> CheckoutStatus:
        """List the changes in the checkout that contains `folder` (the current directory)."""

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
        """Run a checked-out execution again with the changed files of the checkout.

        The checked-out execution becomes the parent of the new one. If it succeeds, the checkout
        moves to the new execution. Without changes nothing runs, and `execution` is the one that
        was checked out.
        """

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
        """Make a file again from its lineage by repeating the fewest executions, in order.

        Contents that are stored, or unchanged on disk, are used as they are. `target` names a
        version, or a deleted file. `to` and `overwrite` are as in `restore`.
        """

    def diff(self, a: str, b: str, *, confirm: bool = False) -> ExecutionDiff | PodDiff:
        """How execution `b` differs from `a`, or Pod `b` (`pod/ns/name`) from Pod `a`.

        `confirm` runs the first diverging process again to test the causes of the difference.
        """

    # -- queries

    def executions(self) -> list[Execution]:
        """All executions, oldest first."""

    def select(
        self,
        filters: Iterable[str] = (),
        *,
        since: datetime | None = None,
        limit: int | None = None,
        workers: bool = False,
    ) -> ExecutionList:
        """The executions that match all `filters`, newest first; at most `limit` of them.

        A filter is `state:failed`, `name:TEXT`, `tag:NAME`, `made:elsewhere` or `made:here`, or any
        text of the command, the name, a tag or a note. `workers` includes the processes from which
        the tasks of pipelines are forked.
        """

    def execution(self, id: str) -> Execution:  # noqa: A002
        """One execution, by id (`e2`), name or uid; `latest` is the newest."""

    def show(self, id: str, *, detail: bool = False) -> ExecutionSummary:  # noqa: A002
        """The document of `clew show --json`; `detail` adds every file and network peer."""

    def lineage(
        self,
        target: str,
        *,
        direction: Direction = "up",
        depth: int | None = None,
        everything: bool = False,
        as_of: datetime | None = None,
    ) -> Lineage:
        """Where `target` came from (`up`), or what was made from it (`down`), across executions.

        A target is a path, a version (`e2:PATH`), a process (`e2.p3`), an execution, or a digest.
        Files of installed packages are counted; `everything` lists them. In a cluster, a target is
        also a file on a claim (`pvc://ns/claim/path`), an object, a Pod (`pod/ns/name`) and more;
        `as_of` is the time at which such names are resolved, and after which nothing is followed.
        """

    def versions(self, path: StrPath) -> list[Version]:
        """Every recorded version of the file at `path`, oldest first."""

    def rules(self) -> list[Rule]:
        """The differences that comparisons ignore; the project's own first."""

    # -- contents

    def read(self, version: str, *, most: int | None = None) -> bytes:
        """The content of a version; an error if it has more than `most` bytes."""
        pieces: list[bytes] = []
        size = 0
        for piece in self.chunks(version):
            size += len(piece)
            if most is not None and size > most:
                raise ClewError(f"{version} has more than {most} bytes", hint="read its chunks")
            pieces.append(piece)
        return b"".join(pieces)

    def chunks(self, version: str) -> Iterator[bytes]:
        """The content of a version, piece by piece, for files of any size."""

    def restore(
        self,
        version: str,
        *,
        to: StrPath | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        """Write a version to its original path, or to the file or directory `to`.

        Raises NotAllowed if that would destroy content that is stored nowhere, unless `overwrite`.
        """

    # -- notes

    def note(self, target: str, **remarks: str) -> list[Note]:
        """Add notes to an execution, a run, a process, or a version; return all of its notes.

        Text without a key is noted as `note=TEXT`.
        """

    def tag(self, id: str, *names: str, remove: Iterable[str] = ()) -> list[str]:  # noqa: A002
        """Add tags to an execution or a run, remove others, and return those that it has then."""

    def notes(self, target: str) -> list[Note]:
        """The notes on a target, oldest first."""
        return self.note(target)

    def source(self, path: StrPath, url: str) -> None:
        """Note that the file at `path`, as it is now, was downloaded from `url`."""
        self.note(fspath(path), source=url)

    # -- exports

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        """An execution's `requirements` (for pip), system `packages`, or `readme` section."""

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: StrPath | BinaryIO | None = None,
        say: Say = ignore_message,
    ) -> bytes | Path | None:
        """An execution as `prov-json`, `prov-n`, `ro-crate`, `oci`, `dockerfile` or `runner`.

        A PROV document is returned, or written to `to`, a path or an open file, as an OCI image is.
        An RO-Crate and a Dockerfile with its files need a new directory `to`. `say` receives,
        before anything is written, what an image or a Dockerfile cannot contain.
        """

    # -- sharing

    def push(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        sign: bool = True,
        progress: Progress | None = None,
    ) -> Transfer:
        """Send executions to a directory or to `s3://bucket/prefix`: all that it lacks, or `ids`.

        Only missing chunks are sent, and an execution arrives complete or not at all. Executions
        recorded here are signed with the user's key if there is one (`clew key`), unless `sign` is
        false.
        """

    def bundle(self, ids: Iterable[str], to: StrPath, *, exclude: Iterable[str] = ()) -> Transfer:
        """Write executions to the new ZIP file `to`, which `pull` reads; without the bytes of the
        files that `exclude` (globs) matches."""

    def pull(
        self,
        url: StrPath,
        ids: Iterable[str] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Transfer:
        """Fetch executions from a remote: all that are missing here, or `ids`.

        An id is a uid (or its beginning), a name, or the number that the pusher sees. Executions
        get new numbers here, in the order they were made.
        """

    def shared(self, url: StrPath, *, warn: Say | None = None) -> list[dict[str, Any]]:
        """The executions at `url`, oldest first, as the pusher sees them; `here`: their id here.

        `warn` receives a sentence for each damaged document, which is skipped.
        """

    # -- maintenance

    def status(self) -> ProjectStatus:
        """The size of the store, executions that are not pushed or sent yet, and the user's own
        files that are different from what executions read or wrote last."""

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        """Delete the records of executions, all or none; `gc` then frees their content."""

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        """Free the content that no execution refers to; running executions keep theirs."""

    def fsck(self) -> Check:
        """Check every stored byte, and that all content named by the graph is stored."""
