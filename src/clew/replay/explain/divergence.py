"""Find which process diverged first, and the candidate causes.

At the origin of a difference, either an input differed (a file, an argument, a variable, a
library), or the process behaved differently on the same inputs (randomness, clock, network, order).
Only recorded facts count, never names: a file called `random.py` is just a file. `confirmation`
tests the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from clew.documents.comparisons import differences
from clew.prov.locators import is_gpu_device
from clew.prov.queries.execution_record import ExecutionRecord
from clew.prov.queries.formats import path_fields
from clew.replay.compare import normalizers
from clew.replay.compare.entity_names import NETWORK_SCHEMES, entity_name
from clew.replay.compare.execution_diff import HARDWARE_FACETS
from clew.replay.compare.execution_pair import ExecutionPair
from clew.replay.compare.output_comparison import Comparison, ContentComparer, ReadContent
from clew.replay.compare.process_alignment import ProcessPair
from clew.replay.compare.volatile_rules import Rule
from clew.replay.explain.difference_origins import Origin, OriginFinder

MISSING_GPU = "gpu"
_RANDOM_SOURCES = ("/dev/urandom", "/dev/random", "/dev/hwrng", "/proc/sys/kernel/random/uuid")
_NEVER_RECORDED = ("clock", "random", "cpu")
_EVIDENCE = (*_RANDOM_SOURCES, "times")
"""Evidence for randomness or the clock, beyond the absence of other causes."""
_MAX_CAUSES = 12


@dataclass(frozen=True)
class Cause:
    """A possible cause of a divergence."""

    cause: str
    detail: str
    what: str = ""
    """The variable, file or package."""
    names: tuple[str, ...] = ()
    """The files it is about."""
    confirmed: bool = False

    def describe(self) -> differences.Cause:
        confidence: Literal["confirmed", "candidate"]
        confidence = "confirmed" if self.confirmed else "candidate"
        return differences.Cause(cause=self.cause, detail=self.detail, confidence=confidence)


@dataclass(frozen=True)
class Suspect:
    """A process that may have diverged first, and why."""

    origin: Origin
    causes: tuple[Cause, ...]

    @property
    def pair(self) -> ProcessPair:
        return self.origin.pair


@dataclass(frozen=True)
class Divergence:
    """The first process at which two executions differ."""

    executions: ExecutionPair
    suspects: tuple[Suspect, ...]
    """The first one is reported."""

    def with_first(self, suspect: Suspect) -> Divergence:
        """Return a copy that reports this suspect."""
        others = [other for other in self.suspects if other.pair != suspect.pair]
        return replace(self, suspects=(suspect, *others))

    def describe(self) -> differences.Divergence:
        named = self.suspects[0]
        return differences.Divergence(
            process=self.executions.b.id(named.pair.b),
            of=self.executions.a.id(named.pair.a),
            command=tuple(named.pair.b.command),
            causes=tuple(cause.describe() for cause in named.causes),
        )


def find_divergence(
    a: ExecutionRecord,
    b: ExecutionRecord,
    comparison: Comparison,
    read: ReadContent,
    rules: Sequence[Rule],
) -> Divergence | None:
    """Find where the significant differences began; None if there are none, or their writers are
    unknown."""
    if not comparison.significant:
        return None
    executions = ExecutionPair(a, b, read, ContentComparer(read, rules))
    origins = OriginFinder(executions)
    candidates = origins.find(comparison.significant)
    suspects = [Suspect(origin, _causes(executions, origins, origin)) for origin in candidates]
    return (
        Divergence(executions, tuple(sorted(suspects, key=_rank(executions)))) if suspects else None
    )


def _rank(
    executions: ExecutionPair,
) -> Callable[[Suspect], tuple[bool, bool, int, bool, bool, int]]:
    """First in time. A process that passed data to the first one may replace it if it has a cause.
    Of processes that merely held the same stream, those with a cause come first, and a program that
    ended comes before one that called exec."""

    def rank(suspect: Suspect) -> tuple[bool, bool, int, bool, bool, int]:
        origin = suspect.origin
        recorded = any(
            c.cause not in _NEVER_RECORDED or c.what in _EVIDENCE for c in suspect.causes
        )
        became = executions.b.successor(origin.pair.b) is not None
        vague = origin.shared and not recorded
        return (
            vague,
            vague and became,
            origin.effect_at,
            not recorded,
            not origin.observed,
            origin.at,
        )

    return rank


def _causes(executions: ExecutionPair, origins: OriginFinder, origin: Origin) -> tuple[Cause, ...]:
    outside = [
        s for s in origins.input_differences(origin.pair) if s.source is None and s.at <= origin.at
    ]
    gpu = _missing_gpu(executions)
    causes = [gpu] if gpu else []
    causes += [
        Cause(s.cause, s.detail, s.what, s.names) for s in outside if not is_gpu_device(s.what)
    ]
    causes += _races(executions, origin)
    causes += _network(executions, origin.pair)
    if gpu is None and not any(s.certain for s in outside) and len(causes) == len(outside):
        causes += _unrecorded_causes(
            executions, origin, _describe_unrecorded(executions, origins, origin)
        )
    causes += _hardware(executions)
    once = {(cause.cause, cause.what or cause.detail): cause for cause in reversed(causes)}
    return tuple(reversed(once.values()))[:_MAX_CAUSES]


def _missing_gpu(executions: ExecutionPair) -> Cause | None:
    """A GPU that only `a` used: a repeat has none unless the user allows it."""
    a, b = (
        {entity_name(version.locator) for version in side.record.versions.values()}
        for side in (executions.a, executions.b)
    )
    missing = sorted(name for name in a - b if is_gpu_device(name))
    if not missing:
        return None
    return Cause(MISSING_GPU, f"it used a GPU ({missing[0]}), and then had none", missing[0])


def _races(executions: ExecutionPair, origin: Origin) -> Iterator[Cause]:
    """Another process wrote the same file at the same time."""
    for name in sorted(origin.names):
        if origin.shared and not _is_permutation(executions, name):
            continue
        for side, process in ((executions.a, origin.pair.a), (executions.b, origin.pair.b)):
            makers = {key for v in side.versions.get(name, ()) for key in side.writers[v.key]}
            rivals = [side.record.activities[key] for key in sorted(makers)]
            for rival in (r for r in rivals if side.overlap(process, r)):
                shown = path_fields(f"file://{name}")["path"] if name.startswith("/") else name
                yield Cause("order", f"{side.id(rival)} wrote {shown} at the same time", shown)


def _is_permutation(executions: ExecutionPair, name: str) -> bool:
    """Whether both have the same lines in another order."""
    contents = _final_contents(executions, name)
    if contents is None:
        return False
    lines = [sorted(content.splitlines()) for content in contents]
    return lines[0] == lines[1]


def _final_contents(executions: ExecutionPair, name: str) -> tuple[bytes, bytes] | None:
    """The bytes that both left there, if small and stored."""
    found = []
    for side in (executions.a, executions.b):
        line = side.versions.get(name)
        digest = side.digest(line[-1]) if line else None
        if not line or digest is None or (line[-1].size or 0) > 1 << 20:
            return None
        content = executions.read(digest)
        if content is None:
            return None
        found.append(content)
    return found[0], found[1]


def _network(executions: ExecutionPair, pair: ProcessPair) -> Iterator[Cause]:
    peers = {name for name in _used_names(executions, pair) if name.startswith(NETWORK_SCHEMES)}
    for peer in sorted(peers)[:3]:
        yield Cause("network", f"it connected to {peer}", peer)


def _used_names(executions: ExecutionPair, pair: ProcessPair) -> set[str]:
    """The names of everything that either used."""
    both = ((executions.a, pair.a), (executions.b, pair.b))
    return {entity_name(v.locator) for side, process in both for _, v in side.used[process.key]}


def _describe_unrecorded(executions: ExecutionPair, origins: OriginFinder, origin: Origin) -> str:
    input_differences = (
        s for s in origins.input_differences(origin.pair) if s.at <= origin.at and not s.certain
    )
    sources = [executions.b.id(s.source.b) for s in input_differences if s.source is not None]
    if not sources:
        return "none of its recorded inputs differ"
    return f"nothing that is recorded differs; the data that {sources[0]} passed to it may"


def _unrecorded_causes(executions: ExecutionPair, origin: Origin, nothing: str) -> list[Cause]:
    """If no recorded input differs, what is never recorded remains, unless it was pinned."""
    used = _used_names(executions, origin.pair)
    device = next((name for name in _RANDOM_SOURCES if name in used), "")
    timely = _differs_in_times_only(executions, origin)
    random = Cause("random", f"it read {device}" if device else nothing, device)
    clock = Cause("clock", nothing)
    if timely:
        clock = Cause("clock", "only dates and times differ in its outputs", "times")
    pinned = executions.pinned()
    left = [
        *([random] if pinned.random is None else []),
        *([clock] if pinned.clock is None else []),
    ]
    return left[::-1] if timely else left


def _differs_in_times_only(executions: ExecutionPair, origin: Origin) -> bool:
    """Whether its outputs differ only in dates and times."""
    for name in origin.names:
        contents = _final_contents(executions, name)
        try:
            if contents is None or len(set(map(normalizers.normalize_times, contents))) > 1:
                return False
        except normalizers.NotApplicable:
            return False
    return bool(origin.names)


def _hardware(executions: ExecutionPair) -> Iterator[Cause]:
    for facet in HARDWARE_FACETS:
        a, b = (side.record.facets.get(facet) for side in (executions.a, executions.b))
        if a != b:
            yield Cause("cpu", f"{facet}: {_describe_facet(a)} → {_describe_facet(b)}", facet)


def _describe_facet(value: Any) -> str:
    if isinstance(value, dict) and not value.get("model"):
        return ", ".join(f"{k} {v}" for k, v in value.items())[:80]
    if isinstance(value, dict):
        return str(value["model"])
    return "none" if value is None else str(value)[:80]
