"""Notes and tags: what users say about executions, pipeline runs, processes and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from clew.api.local.versions import PathResolver, find_noted
from clew.documents.project.notes import Note
from clew.errors import NotFound, UsageError
from clew.pipelines.runs import run_list
from clew.prov.graph import LATEST, Graph
from clew.prov.queries import notes
from clew.prov.queries.executions import find_execution
from clew.prov.queries.tags import TAG, UNTAG, check_tag, get_time_of_change, load_tags
from clew.prov.queries.targets import Target
from clew.prov.row_keys import activity_key
from clew.witness.environment import find_user_name

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
    """Add notes, and return all notes of the target."""
    check_notes(remarks)
    found = _find_run(project.graph, target) or find_noted(project, target, here)
    shown = _withhold(project.graph, found)
    agent = agent or find_user_name(os.getuid())
    for name, value in remarks.items():
        notes.add_note(project.graph, found, name, value, agent=agent)
    return notes.list_notes(project.graph, shown)


def _withhold(graph: Graph, target: Target) -> Target:
    """The target without the versions that the caller may not see; refused if that is all of it.
    An execution that the caller may not read is not found in the first place."""
    if not graph.is_restricted or target.kind != "version":
        return target
    from clew.prov.queries.cluster.visibility import withhold_keys

    return replace(target, keys=withhold_keys(graph, target.keys, target.locator))


def check_notes(remarks: Mapping[str, str]) -> None:
    """Whether these can be noted."""
    for name, value in remarks.items():
        if not name.strip() or len(name) > MAX_LENGTH or len(value) > MAX_LENGTH:
            raise UsageError(
                f"a note needs a name, and at most {MAX_LENGTH} characters", hint="shorten the note"
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
    """Add and remove tags of an execution or a run, and return those that it has then."""
    graph = project.graph
    target = _find_run(graph, id)
    if target is None:
        found = find_execution(graph, id)
        target = Target("execution", found.id, (found.key,), execution=found.number)
    (key,) = target.keys
    agent = agent or find_user_name(os.getuid())
    add, remove = list(dict.fromkeys(add)), list(dict.fromkeys(remove))
    for name in add:
        check_tag(name)
    known = load_tags(graph, [key]).get(key, [])
    times = count(get_time_of_change(graph, key))
    for name in remove:
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else f"clew tag {target.label} NAME"
            raise NotFound(f"{target.label} has no tag {name[:100]}", hint=has)
        notes.add_note(graph, target, UNTAG, name, agent=agent, at=next(times))
    for name in add:
        if name not in known:
            notes.add_note(graph, target, TAG, name, agent=agent, at=next(times))
    return load_tags(graph, [key]).get(key, [])


def _find_run(graph: Graph, text: str) -> Target | None:
    """The pipeline run of this id or uid, also one that has not started."""
    if text == LATEST:  # the newest execution
        return None
    try:
        uid = run_list.find_uid(graph, text)
    except NotFound:
        return None
    return Target("execution", text, (activity_key(graph.project_uid, uid),))
