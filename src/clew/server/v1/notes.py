"""Notes: what people say about things."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.notes import MAX_LENGTH, note
from clew.server.v1 import schemas
from clew.server.v1.dependencies import ProjectDep, Target, Text

router = APIRouter(tags=["notes"])

_Words = Annotated[str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*$")]
_Name = Annotated[
    str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]


class NewNotes(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: Annotated[Text, Field(examples=["e1"])]
    notes: Annotated[dict[_Name, _Words], Field(min_length=1, max_length=100)]


@router.get("/notes", response_model=schemas.Notes)
def list_notes(project: ProjectDep, target: Target) -> Any:
    return {"notes": project.notes(target)}


@router.post("/notes", response_model=schemas.Notes, status_code=201)
def add_notes(project: ProjectDep, remarks: NewNotes) -> Any:
    """Remember them; all that was noted about the target is answered."""
    return {"notes": note(project, remarks.target, remarks.notes)}
