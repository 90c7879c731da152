"""Comparing two executions of a project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from clew.errors import ClewError
from clew.prov.questions.recorded import recorded
from clew.replay.comparing import Read, compare
from clew.replay.differing import differ
from clew.replay.explaining import explain
from clew.replay.volatile import rules
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project import Project


@contextmanager
def reading(project: Project) -> Iterator[Read]:
    """The bytes of contents, where they are stored."""
    with Store(project._folder.store) as store:

        def read(digest: str) -> bytes | None:
            try:
                return b"".join(store.read(digest))
            except ClewError:
                return None

        yield read


def diff(project: Project, a: str, b: str) -> dict[str, Any]:
    """The document of `clew diff --json`."""
    known = rules(project._folder.ignore)
    one, other = recorded(project._graph, a), recorded(project._graph, b)
    with reading(project) as read:
        comparison = compare(one, other, read, known)
        divergence = explain(one, other, comparison, read, known)
        document = differ(one, other, comparison, read, known)
    return {**document, "divergence": divergence.as_json() if divergence else None}
