"""The record of a driver and of one step whose subtree may be reused."""

from typing import Any

import pytest
from tests.unit.replay.record_builder import RecordBuilder

from clew.replay.reuse.dependency_index import DependencyIndex
from clew.replay.reuse.subtree import NotReusable, Subtree
from clew.replay.reuse.subtree_analysis import analyze_subtree

NULL = [[0, 1, "/dev/null"], [1, 2, "/dev/null"], [2, 2, "/dev/null"]]


class Step(RecordBuilder):
    """A driver, and one step whose subtree is asked about."""

    def __init__(
        self, held: list[list[Any]] = NULL, made: tuple[str, ...] = (), **variables: str
    ) -> None:
        super().__init__("sh", "run.sh", facets={"machine": "machine"}, variables={"LANG": "C"})
        self.driver = self.process("sh", "run.sh")
        before = self.process("first")
        self.made = [self.writes(before, path, b"1") for path in made]
        self.ends(before)
        self.step = self.process("step", parent=self.driver, **variables)
        self.begins(self.step, held)

    def begins(self, process: int, held: list[list[Any]] = NULL, **more: Any) -> None:
        begun = {"at": self.now(), "held": held, **more}
        self.activities[process] = self.activities[process]._replace(facets={"begun": begun})

    def subtree(self) -> Subtree:
        self.ends(self.step)
        record = self.record()
        return analyze_subtree(DependencyIndex(record), record.activities[self.step])

    def why(self) -> str:
        with pytest.raises(NotReusable) as told:
            self.subtree()
        return str(told.value)
