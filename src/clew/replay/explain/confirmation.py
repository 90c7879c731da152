"""Confirm the causes of a divergence by diagnostic runs.

Clock and randomness: pin both. If the result is then stable, and differs when only one is pinned to
another value, the process depends on that one. An input: give the process of `b` what the process
of `a` had, everything else unchanged; it must do what `a` did. Order: run the processes one after
the other.

The process runs alone if possible, otherwise its nearest ancestor that can. A diagnostic run that
does not end like the recorded process decides nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from clew.documents.comparisons.differences import Difference
from clew.prov.locators import file_locator, path_of
from clew.prov.queries.execution_record import Activity, ExecutionRecord
from clew.replay.compare.entity_names import entity_name
from clew.replay.compare.output_comparison import exit_code
from clew.replay.execution_index import ExecutionIndex
from clew.replay.explain import isolated_process
from clew.replay.explain.diagnostic_runner import Observation
from clew.replay.explain.divergence import MISSING_GPU, Cause, Divergence, Suspect
from clew.replay.repeat.repeat_plan import RepeatPlan
from clew.replay.sandbox.initial_files import Entry
from clew.run.launch.pins import Pins

_SEEDS = ("5eed" * 8, "0dd5" * 8)
_MAX_SUSPECTS = 12
"""Suspects to try."""


class Runner(Protocol):
    """Runs diagnostics; see `diagnostic_runner`."""

    def plan(self, record: ExecutionRecord) -> RepeatPlan | None: ...

    def observe(self, plan: RepeatPlan, pins: Pins, *, seconds: float) -> Observation | None: ...


def confirm_causes(
    divergence: Divergence, differences: Sequence[Difference], runner: Runner
) -> Divergence:
    """Put the first suspect with a confirmed cause first, if there is one."""
    return _Confirmation(divergence, differences, runner).confirm()


@dataclass(frozen=True)
class _Subject:
    """A process that can run alone, and the outputs of it to compare."""

    side: ExecutionIndex
    process: Activity
    plan: RepeatPlan
    names: frozenset[str]

    @property
    def seconds(self) -> float:
        return max(0.0, (self.side.end(self.process) - self.process.started) / 1e9)


Result = tuple[tuple[str, str | None], ...]


class _Confirmation:
    def __init__(
        self, divergence: Divergence, differences: Sequence[Difference], runner: Runner
    ) -> None:
        self._divergence = divergence
        self._executions = divergence.executions
        self._runner = runner
        self._wholes: dict[str, RepeatPlan | None] = {}
        self._wanted = {entity_name(f"file://{d.path}") for d in differences}
        self._wanted |= {d.path for d in differences}

    def confirm(self) -> Divergence:
        for suspect in self._in_turn():
            causes = self._tried(suspect)
            if any(cause.confirmed for cause in causes):
                return self._divergence.with_first(replace(suspect, causes=tuple(causes)))
        return self._divergence

    def _in_turn(self) -> list[Suspect]:
        """By rank, but a process that passed data on comes before its receivers."""
        suspects = self._divergence.suspects[:_MAX_SUSPECTS]
        places: dict[int, int] = {}
        for suspect in suspects:
            places.setdefault(suspect.origin.effect_at, len(places))

        def turn(suspect: Suspect) -> tuple[int, bool, int]:
            origin = suspect.origin
            return places[origin.effect_at], origin.observed, origin.at

        return sorted(suspects, key=turn)

    def _tried(self, suspect: Suspect) -> list[Cause]:
        if any(cause.cause == MISSING_GPU for cause in suspect.causes):
            return list(suspect.causes)  # diagnostic runs have no GPU either
        given = [c for c in suspect.causes if c.cause in _SUBSTITUTIONS]
        order = [c for c in suspect.causes if c.cause == "order"]
        rest = [c for c in suspect.causes if c not in given and c not in order]
        tried = self._outside(suspect, given)
        if not any(c.confirmed for c in tried):
            tried = self._order(suspect, order, others=bool(given)) or tried
        if not any(c.confirmed for c in tried):
            tried = self._chance(suspect) or tried
        confirmed = [c for c in tried if c.confirmed]
        kept = [c for c in rest if c.cause not in ("clock", "random")]
        return [*confirmed, *kept] if confirmed else list(suspect.causes)

    # -- the process to run

    def _subject(
        self,
        side: ExecutionIndex,
        process: Activity,
        suspect: Suspect,
        within: set[int] | None = None,
    ) -> _Subject | None:
        """The process or its nearest ancestor that can run alone; `within`: and that contains all
        of these processes."""
        for candidate in (process, *side.ancestors(process)):
            if candidate.key == side.record.itself.key:
                return None
            if within and not within <= isolated_process.list_subtree(side, candidate):
                continue
            if not isolated_process.can_run_alone(side, candidate):
                continue
            plan = self._plan(side, candidate)
            if plan is not None:
                names = self._names(side, candidate, suspect)
                return _Subject(side, candidate, plan, names)
        return None

    def _plan(self, side: ExecutionIndex, process: Activity) -> RepeatPlan | None:
        own = self._runner.plan(isolated_process.isolate_record(side, process))
        if own is None:
            return None
        uid = side.record.execution.uid
        if uid not in self._wholes:
            self._wholes[uid] = self._runner.plan(side.record)
        whole = self._wholes[uid] or own
        return replace(
            own,
            initial_files=isolated_process.merge_initial_files(
                side, whole.initial_files, own.initial_files
            ),
        )

    def _names(self, side: ExecutionIndex, process: Activity, suspect: Suspect) -> frozenset[str]:
        """Outputs to compare: those known to differ, otherwise stdout, stderr and status."""
        inside = isolated_process.list_subtree(side, process)
        made = {
            side.name(version.locator): version
            for key in inside
            for _, version in side.generated[key]
        }
        wanted = {name for name in made if name in suspect.origin.names or name in self._wanted}
        names: set[str] = set()
        for name in wanted:
            version = made[name]
            path = path_of(version.locator)
            if path is not None:
                names.add(path.decode(errors="replace"))
            if isolated_process.wrote_inherited(side, process, version):
                names |= {"stdout", "stderr"}
        return frozenset(names or {"stdout", "stderr", "status"})

    def _look(self, subject: _Subject, pins: Pins, plan: RepeatPlan | None = None) -> Result | None:
        """Run it and return the outputs to compare; None if it did not end like the record."""
        seen = self._runner.observe(plan or subject.plan, pins, seconds=subject.seconds)
        if seen is None:
            return None
        if plan is None and seen.status != exit_code(subject.process):
            return None
        contents = {**seen.contents, "status": str(seen.status)}
        return tuple((name, contents.get(name)) for name in sorted(subject.names))

    # -- the causes to try

    def _chance(self, suspect: Suspect) -> list[Cause]:
        subject = self._subject(self._executions.b, suspect.pair.b, suspect)
        if subject is None:
            return []
        now, then = self._pins(suspect)
        base, moved = self._look(subject, now), self._look(subject, then)
        if base is None or moved is None or base == moved:
            return []  # neither makes a difference
        if self._look(subject, now) != base:
            return []  # something else does, too
        causes: list[Cause] = []
        signs = {cause.cause: cause.detail for cause in suspect.causes if cause.what}
        for name, pins in (
            ("random", replace(now, random=then.random)),
            ("clock", replace(now, clock=then.clock)),
        ):
            seen = self._look(subject, pins) if pins != now else base
            if seen not in (None, base) and seen == self._look(subject, pins):
                causes.append(Cause(name, signs.get(name, _PINNED_DETAIL[name]), confirmed=True))
        return causes

    def _pins(self, suspect: Suspect) -> tuple[Pins, Pins]:
        """Two different pins of clock and randomness; pins that both executions share stay."""
        pinned = self._executions.pinned()
        moments = (suspect.pair.b.started, suspect.pair.a.started)
        one, other = (
            Pins(
                clock=moment if pinned.clock is None else pinned.clock,
                random=pinned.random or seed,
                serial=pinned.serial,
            )
            for moment, seed in zip(moments, _SEEDS, strict=True)
        )
        return one, other

    def _order(self, suspect: Suspect, causes: Sequence[Cause], *, others: bool) -> list[Cause]:
        if not causes:
            return []
        side = self._executions.b
        rivals = {suspect.pair.b.key}
        for name in (*suspect.origin.names, *(n for c in causes for n in c.names)):
            for version in side.versions.get(name, ()):
                rivals |= side.writers[version.key]
        subject = self._subject(side, suspect.pair.b, suspect, rivals)
        if subject is None:
            return []
        pinned = self._executions.pinned()
        seen = [self._look(subject, replace(pinned, serial=True)) for _ in range(3)]
        if seen[0] is None or len(set(seen)) > 1:
            return []
        if others and len({self._look(subject, pinned) for _ in range(5)}) == 1:
            return []  # what differed from outside may have done it alone
        return [replace(cause, confirmed=True) for cause in causes]

    def _outside(self, suspect: Suspect, causes: Sequence[Cause]) -> list[Cause]:
        if not causes:
            return []
        a = self._subject(self._executions.a, suspect.pair.a, suspect)
        b = self._subject(self._executions.b, suspect.pair.b, suspect)
        if a is None or b is None:
            return []
        pins, _ = self._pins(suspect)
        before, after = self._look(a, pins), self._look(b, pins)
        if before is None or after is None or before == after:
            return []
        tried = []
        for cause in causes:
            seen = self._look(b, pins, _SUBSTITUTIONS[cause.cause](self, cause, a, b))
            tried.append(replace(cause, confirmed=seen == before))
        return tried

    # -- the old version of one thing

    def _old_files(self, cause: Cause, a: _Subject, b: _Subject) -> RepeatPlan:
        if cause.names == ("stdin",):
            return replace(b.plan, stdin=a.plan.stdin)
        names = set(cause.names)
        if cause.cause == "library":
            package = f"/{cause.what.split('/', 1)[-1]}@"
            owned = (a.plan.packages.items(), b.plan.packages.items())
            names |= {
                entity_name(file_locator("", p)) for own in owned for p, by in own if package in by
            }
        return self._with(a, b, names)

    def _old_listing(self, cause: Cause, a: _Subject, b: _Subject) -> RepeatPlan:
        """Only the names change; files that both have stay as in `b`."""
        sides = []
        for subject in (a, b):
            paths = subject.plan.initial_files.entries
            names = {subject.side.name(file_locator("", path)) for path in paths}
            sides.append({name for name in names if name.rpartition("/")[0] in cause.names})
        return self._with(a, b, sides[0] ^ sides[1])

    def _with(self, a: _Subject, b: _Subject, names: set[str]) -> RepeatPlan:
        """The plan of `b` with these files as `a` had them, or removed if `a` lacked them."""
        old: dict[bytes, Entry | None] = {}
        for name in names:
            path = path_of(f"file://{name}") or b""
            old[self._executions.names.in_b(name)] = a.plan.initial_files.entries.get(path)
        return b.plan.with_files(old)

    def _old_variable(self, cause: Cause, a: _Subject, b: _Subject) -> RepeatPlan:
        environ = dict(b.plan.environ)
        environ.pop(cause.what, None)
        if cause.what in a.plan.environ:
            environ[cause.what] = a.plan.environ[cause.what]
        return replace(b.plan, environ=environ)

    def _old_words(self, cause: Cause, a: _Subject, b: _Subject) -> RepeatPlan:
        return replace(b.plan, command=a.plan.command, cwd=a.plan.cwd)


_SUBSTITUTIONS: dict[str, Callable[[_Confirmation, Cause, _Subject, _Subject], RepeatPlan]] = {
    "input": _Confirmation._old_files,
    "library": _Confirmation._old_files,
    "listing": _Confirmation._old_listing,
    "variable": _Confirmation._old_variable,
    "argument": _Confirmation._old_words,
}
_PINNED_DETAIL = {
    "random": "with the same random numbers, the result is the same",
    "clock": "at the same time of day, the result is the same",
}
