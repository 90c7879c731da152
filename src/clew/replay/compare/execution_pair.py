"""Two executions side by side: which processes correspond, and what is the same in both."""

from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
from clew.replay.compare.entity_names import EntityNames
from clew.replay.compare.output_comparison import ContentComparer, ReadContent
from clew.replay.compare.process_alignment import Alignment, ProcessPair, align_processes
from clew.replay.execution_index import ExecutionIndex
from clew.run.launch.pins import Pins


class ExecutionPair:
    """Two executions with their processes aligned."""

    def __init__(
        self, a: ExecutionRecord, b: ExecutionRecord, read: ReadContent, contents: ContentComparer
    ) -> None:
        self.names = EntityNames(a, b)
        self.a, self.b = ExecutionIndex(a, self.names.a), ExecutionIndex(b, self.names.b)
        self.alignment: Alignment = align_processes(a, b)
        self.read = read
        self.contents = contents

    def pinned(self) -> Pins:
        """The pins that both executions share; they cannot cause a difference."""
        a, b = (Pins.recorded(side.record.facets) for side in (self.a, self.b))
        return Pins(
            clock=a.clock if a.clock == b.clock else None,
            random=a.random if a.random == b.random else None,
            serial=a.serial and b.serial,
        )

    def parent(self, pair: ProcessPair) -> ProcessPair | None:
        """The pair that started this one; None for the top process."""
        above = self.alignment.by_b.get(pair.b.parent or 0)
        if above is None:  # started by one that only `b` has
            above = self.nearest_pair(self.b, pair.b, itself=False)
        return above if above.b.key != self.b.record.itself.key else None

    def nearest_pair(
        self, side: ExecutionIndex, process: Activity, *, itself: bool = True
    ) -> ProcessPair:
        """The pair of this process, or of its nearest ancestor that has one."""
        pairs = self.alignment.by_a if side is self.a else self.alignment.by_b
        line = (*((process,) if itself else ()), *side.ancestors(process))
        return next((pairs[p.key] for p in line if p.key in pairs), self.alignment.pairs[0])

    def same_content(self, a: Version, b: Version) -> bool:
        """Whether two versions have the same bytes, as far as is known."""
        digests = self.a.digest(a), self.b.digest(b)
        if None in digests:
            return a.found and b.found
        return digests[0] == digests[1]

    def common_writer(self, a: Version, b: Version) -> ProcessPair | None:
        """The process pair that wrote both versions; None if there is none."""
        for key in sorted(self.a.writers[a.key]):
            pair = self.alignment.by_a.get(key)
            if pair is not None and pair.b.key in self.b.writers[b.key]:
                return pair
        return None

    def writer_of(self, side: ExecutionIndex, name: str) -> ProcessPair | None:
        """The process that wrote `name` in this execution, or its nearest paired ancestor."""
        for version in side.versions.get(name, ()):
            for key in sorted(side.writers[version.key]):
                return self.nearest_pair(side, side.record.activities[key])
        return None

    def both_wrote(self, name: str) -> bool:
        return all(self.writer_of(side, name) is not None for side in (self.a, self.b))

    def same_final_content(self, name: str) -> bool:
        """Whether both executions left the same bytes there."""
        a, b = self.a.versions.get(name, []), self.b.versions.get(name, [])
        return bool(a and b) and self.same_content(a[-1], b[-1])

    def overlapped(self, a: ProcessPair, b: ProcessPair) -> bool:
        """Whether the two ran at the same time in either execution."""
        return self.a.overlap(a.a, b.a) or self.b.overlap(a.b, b.b)
