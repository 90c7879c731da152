"""Keeping the store in order: free what nobody names, prove what is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew import log, reserve
from clew.api.records import Check, Problem, Reclaimed
from clew.errors import Busy, Full
from clew.prov.questions.contents import digests
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.run.recovering import Unsettled

_LOGGED = 100
"""Problems of one check that are logged one by one."""


def _settle(project: Project) -> list[Unsettled]:
    """Killed executions are told as far as they were seen: what they stored is named by that."""
    from clew.run.recovering import recover

    return recover(project._folder, project._settings)


@contextmanager
def in_reserve(project: Project) -> Iterator[None]:
    """Let the body work on a full disk, in the project's reserve."""
    with reserve.spent(project._folder.path):
        try:
            yield
        except Full as error:
            hint = "delete some files outside .clew first: its reserve is not enough"
            raise Full(error.message, hint=hint) from error
        finally:
            project.close()  # what the database wrote beside its file goes before the reserve comes


def gc(project: Project, *, dry_run: bool) -> Reclaimed:
    with in_reserve(project):
        return _gc(project, dry_run=dry_run)


def _gc(project: Project, *, dry_run: bool) -> Reclaimed:
    from clew.replay.cache import clear

    cached = clear(project._folder.cache, dry_run=dry_run)  # first: this needs no room
    for left in _settle(project):
        raise Busy(
            f"the record of the killed execution {left.uid[:8]} is not complete: {left.why}",
            hint=f"clew rm {left.uid} forgets it",
        )
    with Store(project._folder.store) as store:
        # A function: the store asks it after the sweep began, as an execution may end meanwhile.
        found = store.gc(lambda: digests(project._graph), dry_run=dry_run)
    if not dry_run:
        text = f"freed {found.bytes} bytes of {found.files} contents, {cached} bytes of the cache"
        log.write(project._folder, "info", text)
    return Reclaimed(files=found.files, bytes=found.bytes, cached=cached)


def fsck(project: Project) -> Check:
    """The store's own check, and: whatever the graph says is stored must be there."""
    unsettled = _settle(project)
    with Store(project._folder.store) as store:
        report = store.fsck()
        problems = [Problem(what=found.what, where=found.where) for found in report.problems]
        problems += [
            Problem(what="the record names these bytes, and they are not stored", where=digest)
            for digest in sorted(digests(project._graph))
            if not store.has(digest)
        ]
    problems += [
        Problem(what=f"a killed execution could not be settled: {left.why}", where=left.uid)
        for left in unsettled
    ]
    log.write(
        project._folder,
        "error" if problems else "info",
        f"checked {report.checked} contents and chunks: {len(problems)} problems",
    )
    for problem in problems[:_LOGGED]:
        log.write(project._folder, "error", f"{problem.where}: {problem.what}")
    return Check(checked=report.checked, problems=tuple(problems))
