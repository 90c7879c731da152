"""Two executions side by side: who belongs to whom, and what is the same in both."""

from __future__ import annotations

from clew.prov.queries.execution_record import Activity, Recorded, Version
from clew.replay.compare.entity_names import Names
from clew.replay.compare.execution_index import Side
from clew.replay.compare.output_comparison import Contents, Read
from clew.replay.compare.process_alignment import Alignment, Pair, align
from clew.run.launch.pins import Pins


class Views:
    def __init__(self, a: Recorded, b: Recorded, read: Read, contents: Contents) -> None:
        self.names = Names(a, b)
        self.a, self.b = Side(a, self.names.a), Side(b, self.names.b)
        self.alignment: Alignment = align(a, b)
        self.read = read
        self.contents = contents

    def pinned(self) -> Pins:
        """What was pinned to the same in both: no difference can come of it."""
        a, b = (Pins.recorded(side.record.facets) for side in (self.a, self.b))
        return Pins(
            clock=a.clock if a.clock == b.clock else None,
            random=a.random if a.random == b.random else None,
            serial=a.serial and b.serial,
        )

    def parent(self, pair: Pair) -> Pair | None:
        """The pair that started this one; None: whoever ran the execution."""
        above = self.alignment.by_b.get(pair.b.parent or 0)
        if above is None:  # started by one that only `b` has
            above = self.nearest(self.b, pair.b, itself=False)
        return above if above.b.key != self.b.record.itself.key else None

    def nearest(self, side: Side, process: Activity, *, itself: bool = True) -> Pair:
        """The pair this process is of, or that of its nearest ancestor which has one."""
        pairs = self.alignment.by_a if side is self.a else self.alignment.by_b
        line = (*((process,) if itself else ()), *side.ancestors(process))
        return next((pairs[p.key] for p in line if p.key in pairs), self.alignment.pairs[0])

    def same(self, a: Version, b: Version) -> bool:
        """Whether two versions have the same bytes, as far as is known."""
        digests = self.a.digest(a), self.b.digest(b)
        if None in digests:
            return a.found and b.found
        return digests[0] == digests[1]

    def maker(self, a: Version, b: Version) -> Pair | None:
        """The process that made both; None: they are the work of different ones, or of nobody."""
        for key in sorted(self.a.makers[a.key]):
            pair = self.alignment.by_a.get(key)
            if pair is not None and pair.b.key in self.b.makers[b.key]:
                return pair
        return None

    def maker_at(self, side: Side, name: str) -> Pair | None:
        """Who made what is at `name` in this execution, or the one this maker came of."""
        for version in side.lines.get(name, ()):
            for key in sorted(side.makers[version.key]):
                return self.nearest(side, side.record.activities[key])
        return None

    def both_made(self, name: str) -> bool:
        return all(self.maker_at(side, name) is not None for side in (self.a, self.b))

    def left_alike(self, name: str) -> bool:
        """Whether both ended with the same bytes there."""
        a, b = self.a.lines.get(name, []), self.b.lines.get(name, [])
        return bool(a and b) and self.same(a[-1], b[-1])

    def raced(self, one: Pair, other: Pair) -> bool:
        """Whether two ran at the same time, in either execution."""
        return self.a.together(one.a, other.a) or self.b.together(one.b, other.b)
