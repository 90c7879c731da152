"""Where a difference began: from what differs at the end up to the processes that did it first.

A difference at the end was made by a process at some moment; whatever that process had seen
differently by then, and had from another process of the run, sends us on to that one. Where
nothing more sends us on, an origin is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.prov.queries.execution_record import Activity, Version
from clew.replay.compare.execution_index import Side
from clew.replay.compare.execution_pair import Views
from clew.replay.compare.input_differences import Sight, sights
from clew.replay.compare.output_comparison import Difference, is_stream
from clew.replay.compare.process_alignment import Pair
from clew.replay.explain.output_owners import printed


@dataclass(frozen=True)
class Origin:
    """A process with which a difference may have begun."""

    pair: Pair
    at: int
    """When it first did something that differs."""
    names: frozenset[str]
    """Outputs of its own that differ."""
    observed: bool = True
    """Whether something it did is known to differ; else it passed on what nobody recorded."""
    held: bool = False
    """Whether it is only known that it could write there, along with others."""
    felt: int = 0
    """When that is known to have had an effect: `at`, unless it only passed something on."""


Effect = tuple[Pair, int, str]
"""Who did something that differs, when, and (of outputs) the name of it."""


class Origins:
    def __init__(self, views: Views) -> None:
        self._views = views
        self._seen: dict[Pair, list[Sight]] = {}

    def sights(self, pair: Pair) -> list[Sight]:
        if pair not in self._seen:
            self._seen[pair] = sights(self._views, pair)
        return self._seen[pair]

    def find(self, differences: Sequence[Difference]) -> list[Origin]:
        """Streams and other files that many held open for writing tell little: they count only
        when nothing else differs."""
        made: list[Effect] = []
        held: list[Effect] = []
        for difference in differences:
            for effect, shared in self._effects(difference):
                (held if shared else made).append(effect)
        return self._walk(made, held=False) or self._walk(held, held=True)

    # -- what was done

    def _effects(self, difference: Difference) -> Iterator[tuple[Effect, bool]]:
        if difference.kind == "status":
            pair = self._ending()
            yield (pair, self._views.b.end(pair.b), ""), False
        top = self._views.alignment.pairs[0]
        for side in (self._views.b, self._views.a):
            version = side.last.get(difference.path["path"])
            times = side.makings[version.key] if version else {}
            if version is None or not times:
                continue
            name = side.name(version.locator)
            makers = [side.record.activities[maker] for maker in times]
            pairs = {process.key: self._views.nearest(side, process) for process in makers}
            guilty, innocent = printed(self._views, set(pairs.values()), name)
            for process in makers:
                pair = pairs[process.key]
                shared = (is_stream(version) or len(times) > 1) and pair not in guilty
                end = side.end(process)
                at = end if shared else _written(side, process, version, times[process.key])
                if pair != top and pair not in innocent and (not guilty or pair in guilty):
                    when = at if side is self._views.b else self._views.b.end(pair.b)
                    yield (pair, when, name), shared
            return

    def _ending(self) -> Pair:
        """The process whose end is the execution's: the first one, whatever it became."""
        side = self._views.b
        first = next(iter(side.record.processes), side.record.itself)
        while (after := side.successor(first)) is not None:
            first = after
        return self._views.nearest(side, first)

    # -- going up

    def _walk(self, effects: list[Effect], *, held: bool) -> list[Origin]:
        origins: dict[Pair, Origin] = {}
        waiting = list(effects)
        met = {(pair, at) for pair, at, _ in effects}
        own: dict[Pair, set[str]] = {}
        for pair, _, name in effects:
            own.setdefault(pair, set()).update({name} - {""})
        while waiting:
            pair, at, _ = waiting.pop()
            up = [(source, when, "") for source, when in self._sources(pair, at, sure=True)]
            waiting += [effect for effect in up if effect[:2] not in met]
            met |= {effect[:2] for effect in up}
            known = origins.get(pair)
            if not up and (known is None or at < known.at):
                names = frozenset(own.get(pair, ()))
                origins[pair] = Origin(pair, at, names, held=held and pair in own, felt=at)
        if met and not origins:  # each has its reason in another: the first will do
            pair, at = min(met, key=lambda node: node[1])
            origins[pair] = Origin(pair, at, frozenset(own.get(pair, ())), felt=at)
        return [*origins.values(), *self._upstream(origins)]

    def _sources(self, pair: Pair, at: int, *, sure: bool) -> Iterator[tuple[Pair, int]]:
        for sight in self.sights(pair):
            if sight.source not in (None, pair) and sight.at <= at and sight.sure >= sure:
                assert sight.source is not None
                yield sight.source, sight.at

    def _upstream(self, origins: dict[Pair, Origin]) -> list[Origin]:
        """Whoever passed on to these, directly or not, what nobody recorded."""
        found: dict[Pair, Origin] = {}
        waiting = sorted(origins.values(), key=lambda origin: -origin.felt)
        while waiting:
            known = waiting.pop()
            for source, _ in self._sources(known.pair, known.at, sure=False):
                if source not in origins and source not in found:
                    end = self._views.b.end(source.b)
                    found[source] = replace(
                        known, pair=source, at=end, names=frozenset(), observed=False
                    )
                    waiting.append(found[source])
        return list(found.values())


_TICK = 50_000_000
"""By how much a file's time may lag behind: it is that of some tick of the kernel's clock."""


def _written(side: Side, process: Activity, version: Version, began: int) -> int:
    """When the last of it was written: the file's own time tells, unless somebody set that."""
    end = side.end(process)
    last = (version.mtime or 0) + _TICK
    return min(last, end) if began <= last else end
