"""Notes: what people say about things."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from clew.api.local.versions import PathResolver, find_noted
from clew.documents.notes import Note
from clew.errors import UsageError
from clew.prov.queries import notes
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
