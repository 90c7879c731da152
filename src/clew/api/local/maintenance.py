"""Remove executions, delete unreferenced content (gc) and verify the rest (fsck)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blake3 import blake3

from clew import disk_reserve, log, signing
from clew.api.executions import Execution
from clew.api.local.executions import find_execution
from clew.api.local.remotes.push_pull import MAX_EVENT_BYTES
from clew.documents.project.maintenance import Check, Problem, Reclaimed
from clew.errors import Busy, ClewError, Full, UsageError
from clew.prov.events import from_batch
from clew.prov.import_scope import find_facts_out_of_scope
from clew.prov.imported_signatures import find_unsigned_changes, list_all_signatures
from clew.prov.queries.contents import list_live_digests
from clew.prov.queries.formats import execution_id
from clew.store import Store
from clew.store.types import format_digest

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.run.recovery import UnrecoveredExecution

_MAX_LOGGED = 100
"""Problems of one check that are logged one by one."""


def _recover_executions(project: ProjectState) -> list[UnrecoveredExecution]:
    """Complete the records of killed executions first: gc keeps the content they refer to, and fsck
    checks it."""
    from clew.run.recovery import recover

    return recover(project.directory, project.settings)


@contextmanager
def using_reserve(project: ProjectState) -> Iterator[None]:
    """Let the body work on a full disk, in the project's reserve."""
    with disk_reserve.released(project.directory.path):
        try:
            yield
        except Full as error:
            hint = "delete some files outside .clew first: Clew's reserve is too small"
            raise Full(error.message, hint=hint) from error
        finally:
            project.close()  # what the database wrote beside its file goes before the reserve comes


def remove(project: ProjectState, ids: Iterable[str], *, dry_run: bool) -> list[Execution]:
    from clew.prov.queries.execution_record import find_inheriting_executions
    from clew.run.recovery import discard_after

    executions = {found.uid: found for found in (find_execution(project, id_) for id_ in ids)}
    for execution in executions.values():
        if execution.state == "running":
            raise Busy(f"{execution.id} is still running", hint="wait for its end, or stop it")
    if left := find_inheriting_executions(project.graph, executions):
        names = " ".join(execution_id(number) for _, number in left)
        raise UsageError(
            f"{names} would be incomplete without it", hint=f"remove these too: clew rm {names}"
        )
    if not dry_run:
        with using_reserve(project):
            for uid in executions:
                with discard_after(project.directory, uid):
                    project.graph.remove(uid)
        removed = ", ".join(f"{found.id} ({uid})" for uid, found in executions.items())
        log.write(project.directory, "info", f"removed {removed}")
    return list(executions.values())


def gc(project: ProjectState, *, dry_run: bool) -> Reclaimed:
    with using_reserve(project):
        return _gc(project, dry_run=dry_run)


def _gc(project: ProjectState, *, dry_run: bool) -> Reclaimed:
    from clew.replay.sandbox.file_cache import clear_cache

    cached = clear_cache(project.directory.cache, dry_run=dry_run)  # first: this needs no room
    for left in _recover_executions(project):
        raise Busy(
            f"the record of the killed execution {left.uid[:8]} is not complete: {left.why}",
            hint=f"clew rm {left.uid} removes it",
        )
    with Store(project.directory.store) as store:
        # A function: the store asks it after the sweep began, as an execution may end meanwhile.
        found = store.gc(lambda: list_live_digests(project.graph), dry_run=dry_run)
    if not dry_run:
        text = f"freed {found.bytes} bytes of {found.files} contents, {cached} bytes of the cache"
        log.write(project.directory, "info", text)
    return Reclaimed(files=found.files, bytes=found.bytes, cached=cached, dry_run=dry_run)


def fsck(project: ProjectState) -> Check:
    """Check that the store is intact, that it has all content the graph says is stored, that no
    execution describes another one, and that signed executions did not change."""
    unsettled = _recover_executions(project)
    with Store(project.directory.store) as store:
        report = store.fsck()
        problems = [Problem(what=found.what, where=found.where) for found in report.problems]
        problems += [
            Problem(what="the record refers to this content, but it is not stored", where=digest)
            for digest in sorted(list_live_digests(project.graph))
            if not store.has(digest)
        ]
        problems += _check_signatures(project, store)
    problems += [
        Problem(what=what, where=where) for what, where in find_facts_out_of_scope(project.graph)
    ]
    problems += [
        Problem(
            what=f"the record of a killed execution could not be completed: {left.why}",
            where=left.uid,
        )
        for left in unsettled
    ]
    log.write(
        project.directory,
        "error" if problems else "info",
        f"checked {report.checked} contents and chunks: {len(problems)} problems",
    )
    for problem in problems[:_MAX_LOGGED]:
        log.write(project.directory, "error", f"{problem.where}: {problem.what}")
    return Check(ok=not problems, checked=report.checked, problems=tuple(problems))


def _check_signatures(project: ProjectState, store: Store) -> Iterator[Problem]:
    for uid, number, signature in list_all_signatures(project.graph):
        id_ = execution_id(number)
        try:
            found = signing.verify(signature.signature, signing.message(uid, signature.events))
            data = store.read_whole(signature.events, most=MAX_EVENT_BYTES)
        except ClewError as error:
            yield Problem(what=f"the signature cannot be checked: {error.message}", where=id_)
            continue
        if found != signature.key or format_digest(blake3(data).digest()) != signature.events:
            yield Problem(what="the signature does not match the record", where=id_)
            continue
        for what, where in find_unsigned_changes(project.graph, uid, from_batch(data)):
            yield Problem(what=f"{id_} is not what was signed: {what}", where=where)
