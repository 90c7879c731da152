"""Where a difference began: from what differs at the end up to the processes that did it first.

A difference at the end was made by a process at some moment; whatever that process had seen
differently by then, and had from another process of the run, sends us on to that one. Where
nothing more sends us on, an origin is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clew.prov.queries.execution_record import Activity, Version
from clew.replay.compare.execution_pair import ExecutionPair
from clew.replay.compare.input_differences import InputDifference, find_input_differences
from clew.replay.compare.output_comparison import Difference, is_stream
from clew.replay.compare.process_alignment import ProcessPair
from clew.replay.execution_index import ExecutionIndex
from clew.replay.explain.output_owners import compare_printed


@dataclass(frozen=True)
class Origin:
    """A process with which a difference may have begun."""

    pair: ProcessPair
    at: int
    """When it first did something that differs."""
    names: frozenset[str]
    """Outputs of its own that differ."""
    observed: bool = True
    """Whether something it did is known to differ; else it passed on what nobody recorded."""
    shared: bool = False
    """Whether it is only known that it could write there, along with others."""
    effect_at: int = 0
    """When that is known to have had an effect: `at`, unless it only passed something on."""


Effect = tuple[ProcessPair, int, str]
"""Who did something that differs, when, and (of outputs) the name of it."""


class OriginFinder:
    def __init__(self, executions: ExecutionPair) -> None:
        self._executions = executions
        self._seen: dict[ProcessPair, list[InputDifference]] = {}

    def input_differences(self, pair: ProcessPair) -> list[InputDifference]:
        if pair not in self._seen:
            self._seen[pair] = find_input_differences(self._executions, pair)
        return self._seen[pair]

    def find(self, differences: Sequence[Difference]) -> list[Origin]:
        """Streams and other files that many held open for writing tell little: they count only
        when nothing else differs."""
        made: list[Effect] = []
        held: list[Effect] = []
        for difference in differences:
            for effect, shared in self._effects(difference):
                (held if shared else made).append(effect)
        return self._walk(made, shared=False) or self._walk(held, shared=True)

    # -- what was done

    def _effects(self, difference: Difference) -> Iterator[tuple[Effect, bool]]:
        if difference.kind == "status":
            pair = self._ending()
            yield (pair, self._executions.b.end(pair.b), ""), False
        top = self._executions.alignment.pairs[0]
        for side in (self._executions.b, self._executions.a):
            version = side.last_versions.get(difference.path["path"])
            times = side.write_times[version.key] if version else {}
            if version is None or not times:
                continue
            name = side.name(version.locator)
            makers = [side.record.activities[maker] for maker in times]
            pairs = {
                process.key: self._executions.nearest_pair(side, process) for process in makers
            }
            guilty, innocent = compare_printed(self._executions, set(pairs.values()), name)
            for process in makers:
                pair = pairs[process.key]
                shared = (is_stream(version) or len(times) > 1) and pair not in guilty
                end = side.end(process)
                at = end if shared else _last_write_time(side, process, version, times[process.key])
                if pair != top and pair not in innocent and (not guilty or pair in guilty):
                    when = at if side is self._executions.b else self._executions.b.end(pair.b)
                    yield (pair, when, name), shared
            return

    def _ending(self) -> ProcessPair:
        """The process whose end is the execution's: the first one, whatever it became."""
        side = self._executions.b
        first = next(iter(side.record.processes), side.record.itself)
        while (after := side.successor(first)) is not None:
            first = after
        return self._executions.nearest_pair(side, first)

    # -- going up

    def _walk(self, effects: list[Effect], *, shared: bool) -> list[Origin]:
        origins: dict[ProcessPair, Origin] = {}
        waiting = list(effects)
        met = {(pair, at) for pair, at, _ in effects}
        own: dict[ProcessPair, set[str]] = {}
        for pair, _, name in effects:
            own.setdefault(pair, set()).update({name} - {""})
        while waiting:
            pair, at, _ = waiting.pop()
            up = [(source, when, "") for source, when in self._sources(pair, at, certain=True)]
            waiting += [effect for effect in up if effect[:2] not in met]
            met |= {effect[:2] for effect in up}
            known = origins.get(pair)
            if not up and (known is None or at < known.at):
                names = frozenset(own.get(pair, ()))
                origins[pair] = Origin(pair, at, names, shared=shared and pair in own, effect_at=at)
        if met and not origins:  # each has its reason in another: the first will do
            pair, at = min(met, key=lambda node: node[1])
            origins[pair] = Origin(pair, at, frozenset(own.get(pair, ())), effect_at=at)
        return [*origins.values(), *self._upstream(origins)]

    def _sources(
        self, pair: ProcessPair, at: int, *, certain: bool
    ) -> Iterator[tuple[ProcessPair, int]]:
        for difference in self.input_differences(pair):
            if (
                difference.source not in (None, pair)
                and difference.at <= at
                and difference.certain >= certain
            ):
                assert difference.source is not None
                yield difference.source, difference.at

    def _upstream(self, origins: dict[ProcessPair, Origin]) -> list[Origin]:
        """Whoever passed on to these, directly or not, what nobody recorded."""
        found: dict[ProcessPair, Origin] = {}
        waiting = sorted(origins.values(), key=lambda origin: -origin.effect_at)
        while waiting:
            known = waiting.pop()
            for source, _ in self._sources(known.pair, known.at, certain=False):
                if source not in origins and source not in found:
                    end = self._executions.b.end(source.b)
                    found[source] = replace(
                        known, pair=source, at=end, names=frozenset(), observed=False
                    )
                    waiting.append(found[source])
        return list(found.values())


_CLOCK_TICK_NS = 50_000_000
"""By how much a file's time may lag behind: it is that of some tick of the kernel's clock."""


def _last_write_time(side: ExecutionIndex, process: Activity, version: Version, began: int) -> int:
    """When the last of it was written: the file's own time tells, unless somebody set that."""
    end = side.end(process)
    last = (version.mtime or 0) + _CLOCK_TICK_NS
    return min(last, end) if began <= last else end
