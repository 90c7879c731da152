"""Notes and tags: what users say about things."""

from datetime import datetime

from clew.documents.document import Document


class Note(Document, frozen=True, kw_only=True):
    """A user's remark about an execution, a run, a process or a version."""

    key: str
    value: str
    at: datetime
    agent: str


class Notes(Document, frozen=True, kw_only=True):
    """Oldest first."""

    notes: tuple[Note, ...]


class Tags(Document, frozen=True, kw_only=True):
    """The tags of an execution or a run, in the order they were given."""

    tags: tuple[str, ...]
