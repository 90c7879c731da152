"""What a node knows of one target, from one round of probes to the next.

A latency that changed, and a target that does not answer, counts when another round confirms it:
what lasts shorter is no reason to place Pods elsewhere. That round follows at once, so what is
known is seconds old and not an interval.
"""

from typing import NamedTuple

from clew.placement.measurement.round_result import RoundResult

FAILED_ROUNDS = 3
"""After so many failures in a row, a target is unreachable."""


class Taken(NamedTuple):
    """What a round means."""

    changed: bool
    """What others should know is different now."""
    repeat: bool
    """Another round is to confirm it soon."""


class TargetRecord:
    def __init__(self) -> None:
        self.latest: RoundResult | None = None
        self.at = 0.0
        """When `latest` was measured, in seconds since the epoch."""
        self.unreachable = False
        self.rounds = 0
        self._reported: RoundResult | None = None
        self._unconfirmed: RoundResult | None = None
        self._failed = 0

    def take(self, result: RoundResult | None, *, at: float) -> Taken:
        """Take the result of a round; None if too many probes failed."""
        self.rounds += 1
        if result is None:
            return self._fail()
        self._failed = 0
        if self._reported is None:
            return self._report(result, at)
        if result.agrees(self._reported):
            self._unconfirmed = None
            self.latest, self.at = result, at
            return Taken(changed=False, repeat=False)
        if self._unconfirmed is not None and result.agrees(self._unconfirmed):
            return self._report(result, at)
        self._unconfirmed = result
        return Taken(changed=False, repeat=True)

    def _report(self, result: RoundResult, at: float) -> Taken:
        self.latest = self._reported = result
        self.at = at
        self._unconfirmed = None
        self.unreachable = False
        return Taken(changed=True, repeat=False)

    def _fail(self) -> Taken:
        self._failed += 1
        if self.unreachable or self._failed < FAILED_ROUNDS:
            return Taken(changed=False, repeat=not self.unreachable)
        self.latest = self._reported = self._unconfirmed = None
        self.unreachable = True
        return Taken(changed=True, repeat=False)
