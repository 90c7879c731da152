"""Follow a difference back to the processes where it began.

A process made each differing output. If that process had by then observed a difference that came
from another process, continue there. A process without such a source is an origin.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from clew.documents.comparisons.differences import Difference
from clew.documents.ids import Digest
from clew.prov.queries.execution_record import Activity, Version
from clew.redaction import MASK
from clew.replay.compare.execution_pair import ExecutionPair
from clew.replay.compare.input_differences import InputDifference, find_input_differences
from clew.replay.compare.output_comparison import is_stream
from clew.replay.compare.process_alignment import ProcessPair
from clew.replay.execution_index import ExecutionIndex


@dataclass(frozen=True)
class Origin:
    """A process where a difference may have begun."""

    pair: ProcessPair
    at: int
    """The time of its first difference."""
    names: frozenset[str]
    """Its outputs that differ."""
    observed: bool = True
    """Whether something it did is known to differ; otherwise it only passed on unrecorded data."""
    shared: bool = False
    """Whether it only could have written there, along with others."""
    effect_at: int = 0
    """When the difference had a known effect: `at`, unless it only passed data on."""


Effect = tuple[ProcessPair, int, str]
"""A process pair that did something different, when, and the name of the output, if any."""


class OriginFinder:
    def __init__(self, executions: ExecutionPair) -> None:
        self._executions = executions
        self._seen: dict[ProcessPair, list[InputDifference]] = {}

    def input_differences(self, pair: ProcessPair) -> list[InputDifference]:
        if pair not in self._seen:
            self._seen[pair] = find_input_differences(self._executions, pair)
        return self._seen[pair]

    def find(self, differences: Sequence[Difference]) -> list[Origin]:
        """Outputs that many processes held open count only if nothing else differs."""
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
            version = side.last_versions.get(difference.path)
            times = side.write_times[version.key] if version else {}
            if version is None or not times:
                continue
            name = side.name(version.locator)
            makers = [side.record.activities[maker] for maker in times]
            pairs = {
                process.key: self._executions.nearest_pair(side, process) for process in makers
            }
            changed, unchanged = _compare_printed(self._executions, set(pairs.values()), name)
            for process in makers:
                pair = pairs[process.key]
                shared = (is_stream(version) or len(times) > 1) and pair not in changed
                end = side.end(process)
                at = end if shared else _last_write_time(side, process, version, times[process.key])
                if pair != top and pair not in unchanged and (not changed or pair in changed):
                    when = at if side is self._executions.b else self._executions.b.end(pair.b)
                    yield (pair, when, name), shared
            return

    def _ending(self) -> ProcessPair:
        """The process whose end is the execution's: the first one, after its exec calls."""
        side = self._executions.b
        first = next(iter(side.record.processes), side.record.itself)
        return self._executions.nearest_pair(side, side.exec_chain(first)[-1])

    # -- going up

    def _walk(self, effects: list[Effect], *, shared: bool) -> list[Origin]:
        origins: dict[ProcessPair, Origin] = {}
        waiting = list(effects)
        visited = {(pair, at) for pair, at, _ in effects}
        outputs: dict[ProcessPair, set[str]] = {}
        for pair, _, name in effects:
            outputs.setdefault(pair, set()).update({name} - {""})
        while waiting:
            pair, at, _ = waiting.pop()
            up = [(source, when, "") for source, when in self._sources(pair, at, certain=True)]
            waiting += [effect for effect in up if effect[:2] not in visited]
            visited |= {effect[:2] for effect in up}
            known = origins.get(pair)
            if not up and (known is None or at < known.at):
                names = frozenset(outputs.get(pair, ()))
                origins[pair] = Origin(
                    pair, at, names, shared=shared and pair in outputs, effect_at=at
                )
        if visited and not origins:  # a cycle: take the first
            pair, at = min(visited, key=lambda node: node[1])
            origins[pair] = Origin(pair, at, frozenset(outputs.get(pair, ())), effect_at=at)
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
        """Processes that passed unrecorded data to these, directly or not."""
        upstream: dict[ProcessPair, Origin] = {}
        waiting = sorted(origins.values(), key=lambda origin: -origin.effect_at)
        while waiting:
            known = waiting.pop()
            for source, _ in self._sources(known.pair, known.at, certain=False):
                if source not in origins and source not in upstream:
                    end = self._executions.b.end(source.b)
                    upstream[source] = replace(
                        known, pair=source, at=end, names=frozenset(), observed=False
                    )
                    waiting.append(upstream[source])
        return list(upstream.values())


_CLOCK_TICK_NS = 50_000_000
"""Nanoseconds that a file's time may lag behind: it is that of a kernel clock tick."""


def _last_write_time(side: ExecutionIndex, process: Activity, version: Version, began: int) -> int:
    """The time of the last write: the file's own time, unless that was set."""
    end = side.end(process)
    last = (version.mtime or 0) + _CLOCK_TICK_NS
    return min(last, end) if began <= last else end


def _compare_printed(
    executions: ExecutionPair, pairs: set[ProcessPair], stream: str
) -> tuple[set[ProcessPair], set[ProcessPair]]:
    """The processes that held this stream and are known to have printed something else, and those
    known to have printed the same. A parent's part contains its children's: if they explain all of
    it, they replace the parent."""
    changed: set[ProcessPair] = set()
    same: set[ProcessPair] = set()
    contents = _printed_contents(executions, stream)
    if contents is None:
        return changed, same
    for pair in pairs:
        a, b = executions.a.output_range(pair.a, stream), executions.b.output_range(pair.b, stream)
        if a is not None and b is not None:
            alike = contents[0][a[0] : a[1]] == contents[1][b[0] : b[1]]
            (same if alike else changed).add(pair)
    unknown = pairs - changed - same
    above = _ancestors(executions, changed | unknown)
    return changed - above, same


def _ancestors(executions: ExecutionPair, pairs: Iterable[ProcessPair]) -> set[ProcessPair]:
    lines = (executions.b.with_ancestors(pair.b) - {pair.b.key} for pair in pairs)
    keys = {key for line in lines for key in line}
    return {executions.alignment.by_b[key] for key in keys if key in executions.alignment.by_b}


def _printed_contents(executions: ExecutionPair, stream: str) -> tuple[bytes, bytes] | None:
    """The output of both, if it is stored unmasked."""
    contents = []
    for side in (executions.a, executions.b):
        line = side.versions.get(stream)
        if stream not in ("stdout", "stderr") or not line or not line[-1].stored:
            return None
        content = executions.read(line[-1].digest or Digest(""))
        if content is None or MASK.encode() in content:  # what is masked has another length
            return None
        contents.append(content)
    return contents[0], contents[1]
