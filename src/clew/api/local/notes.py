"""Notes and tags: what users say about executions, processes and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING

from clew.api.local.versions import PathResolver, find_noted
from clew.documents.notes import Note
from clew.errors import NotFound, UsageError
from clew.prov.queries import notes
from clew.prov.queries.executions import find_execution
from clew.prov.queries.tags import TAG, UNTAG, check_tag, get_time_of_change, load_tags
from clew.prov.queries.targets import Target
from clew.witness.environment import user_name

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

MAX_LENGTH = 10_000


def note(
    project: ProjectState,
    target: str,
    remarks: Mapping[str, str],
    here: PathResolver | None = None,
    agent: str | None = None,
) -> list[Note]:
    """Add remarks, and answer with all there are."""
    check_notes(remarks)
    found = find_noted(project, target, here)
    if found.kind == "execution" and found.execution is None:
        raise UsageError(
            f"{target} is a pipeline run, and notes are about executions and files",
            hint=f"note a task of it: clew note {target}/TASK TEXT",
        )
    agent = agent or user_name(os.getuid())
    for name, value in remarks.items():
        notes.add_note(project.graph, found, name, value, agent=agent)
    return notes.list_notes(project.graph, found)


def check_notes(remarks: Mapping[str, str]) -> None:
    """Whether these can be noted."""
    for name, value in remarks.items():
        if not name.strip() or len(name) > MAX_LENGTH or len(value) > MAX_LENGTH:
            raise UsageError(
                f"a note needs a name, and at most {MAX_LENGTH} characters", hint="say less"
            )
        if name in (TAG, UNTAG):
            raise UsageError(f"{name} is not the name of a note", hint="clew tag ID NAME")


def tag(
    project: ProjectState,
    id: str,  # noqa: A002
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    agent: str | None = None,
) -> list[str]:
    """Add and remove tags of an execution, and answer with those that it has then."""
    graph = project.graph
    found = find_execution(graph, id)
    target = Target("execution", found.id, (found.key,), execution=found.number)
    agent = agent or user_name(os.getuid())
    add, remove = list(dict.fromkeys(add)), list(dict.fromkeys(remove))
    for name in add:
        check_tag(name)
    known = load_tags(graph, [found.key]).get(found.key, [])
    times = count(get_time_of_change(graph, found.key))
    for name in remove:
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else f"clew tag {found.id} NAME"
            raise NotFound(f"{found.id} has no tag {name[:100]}", hint=has)
        notes.add_note(graph, target, UNTAG, name, agent=agent, at=next(times))
    for name in add:
        if name not in known:
            notes.add_note(graph, target, TAG, name, agent=agent, at=next(times))
    return load_tags(graph, [found.key]).get(found.key, [])
