"""Keeping the store in order: free what nobody names, prove what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.records import Check, Problem, Reclaimed
from clew.prov.questions.contents import digests
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project import Project


def gc(project: Project, *, dry_run: bool) -> Reclaimed:
    with Store(project._folder.store) as store:
        # A function: the store asks it after the sweep began, as an execution may end meanwhile.
        found = store.gc(lambda: digests(project._graph), dry_run=dry_run)
    return Reclaimed(files=found.files, bytes=found.bytes)


def fsck(project: Project) -> Check:
    """The store's own check, and: whatever the graph says is stored must be there."""
    with Store(project._folder.store) as store:
        report = store.fsck()
        problems = [Problem(what=found.what, where=found.where) for found in report.problems]
        problems += [
            Problem(what="the record names these bytes, and they are not stored", where=digest)
            for digest in sorted(digests(project._graph))
            if not store.has(digest)
        ]
    return Check(checked=report.checked, problems=tuple(problems))
