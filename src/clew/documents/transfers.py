"""Pushes and pulls."""

from clew.documents.document import Document
from clew.documents.executions import Execution


class Transfer(Document, frozen=True, kw_only=True):
    """What a push or a pull did."""

    url: str
    executions: tuple[Execution, ...]
    """The executions that were transferred, with their ids in this project."""
    bytes: int
    """What was sent or fetched."""
    remarks: tuple[str, ...]
    """What a person should know: a name that was dropped, an execution that was left out."""
