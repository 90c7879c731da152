"""Notes and tags: what users say about executions, pipeline runs, processes and files."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.api.local.notes import MAX_LENGTH, note, tag
from clew.documents.project.notes import Notes, Tags
from clew.server.v1.dependencies import ProjectDep, Target, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Id

router = DocumentRouter(tags=["notes"])

_Words = Annotated[str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*$")]
_Name = Annotated[
    str, StringConstraints(max_length=MAX_LENGTH, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")
]


class NewNotes(BaseModel):
    model_config = ConfigDict(extra="forbid")

    target: Annotated[Text, Field(examples=["e1"])]
    notes: Annotated[dict[_Name, _Words], Field(min_length=1, max_length=100)]


class TagChanges(BaseModel):
    """`agent`: the user who tags; by default the server's."""

    model_config = ConfigDict(extra="forbid")

    add: Annotated[list[Text], Field(max_length=100)] = []
    remove: Annotated[list[Text], Field(max_length=100)] = []
    agent: Annotated[Text, Field(max_length=1024)] | None = None


@router.post("/executions/{id}/tags")
def change_tags(project: ProjectDep, id: Id, changes: TagChanges) -> Tags:  # noqa: A002
    """Add and remove tags of an execution, or of a pipeline run by its id or uid. The response has
    those that it has then."""
    return Tags(tags=tuple(tag(project, id, changes.add, changes.remove, changes.agent)))


@router.get("/notes")
def list_notes(project: ProjectDep, target: Target) -> Notes:
    return Notes(notes=tuple(project.notes(target)))


@router.post("/notes", status_code=201)
def add_notes(project: ProjectDep, remarks: NewNotes) -> Notes:
    """Add notes to a target. The response has all of its notes."""
    return Notes(notes=tuple(note(project, remarks.target, remarks.notes)))
