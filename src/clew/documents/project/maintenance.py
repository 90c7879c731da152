"""The project: its directory, its rules, and what gc and fsck report."""

from clew.documents.document import Document
from clew.documents.ids import Uid


class ProjectInfo(Document, frozen=True, kw_only=True):
    root: str
    """The directory that contains `.clew/`, on the server's machine."""
    uid: Uid


class Rule(Document, frozen=True, kw_only=True):
    """Differences that comparisons ignore."""

    name: str
    paths: tuple[str, ...]
    what: str


class Rules(Document, frozen=True, kw_only=True):
    """The project's own first."""

    rules: tuple[Rule, ...]


class Reclaimed(Document, frozen=True, kw_only=True):
    """The result of `gc`, or the estimate."""

    files: int
    bytes: int
    cached: int
    """Bytes of the cache of repeats, which is made again when it is needed."""
    dry_run: bool


class Problem(Document, frozen=True, kw_only=True):
    """A fault that `fsck` found, and where."""

    what: str
    where: str


class Check(Document, frozen=True, kw_only=True):
    """The result of `fsck`."""

    ok: bool
    checked: int
    """The number of contents and chunks."""
    problems: tuple[Problem, ...]
