"""Notes: what people say about things."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.notes import MAX_LENGTH, note
from clew.documents.notes import Notes
from clew.server.v1.dependencies import ProjectDep, Target, Text
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["notes"])

_Words = Annotated[str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*$")]
_Name = Annotated[
    str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]


class NewNotes(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: Annotated[Text, Field(examples=["e1"])]
    notes: Annotated[dict[_Name, _Words], Field(min_length=1, max_length=100)]


@router.get("/notes")
def list_notes(project: ProjectDep, target: Target) -> Notes:
    return Notes(notes=tuple(project.notes(target)))


@router.post("/notes", status_code=201)
def add_notes(project: ProjectDep, remarks: NewNotes) -> Notes:
    """Add notes to a target. The response has all of its notes."""
    return Notes(notes=tuple(note(project, remarks.target, remarks.notes)))
