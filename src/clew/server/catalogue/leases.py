"""Which leases are over, as one claimer has seen them.

A lease that is over by the clock does not say that its holder is gone: while the database was away
nobody could keep one up. So a claimer also wants to have seen that a lease did not change, over
some seconds in which the database answered it all the time. In that time a holder that lives, and
lost the database as the claimer did, has reached it again and kept its lease up.
"""

from __future__ import annotations

from collections.abc import Iterable

GRACE_SECONDS = 8.0
"""Seconds in which a holder that lives surely keeps its lease up: it tries every second, and gives
up a connection that is not made in 5 s."""


class LeaseWatcher:
    """Those that one claimer looks at, again and again."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._seen: dict[str, tuple[int, float]] = {}
        self._looked = 0.0

    def over(self, held: Iterable[tuple[str, int]], *, now: int, clock: float) -> list[str]:
        """The runs whose leases are over. `held`: all that are held, and until when; 0: the holder
        let go. `now`: the time, in ns; `clock`: seconds that never go backwards."""
        if clock - self._looked > self._grace / 2:
            self._seen.clear()  # the database was away, or we did not look
        self._looked = clock
        before, self._seen = self._seen, {}
        found = []
        for run, lease in held:
            known, since = before.get(run, (lease, clock))
            since = since if known == lease else clock
            self._seen[run] = (lease, since)
            if lease == 0 or (lease < now and clock - since >= self._grace):
                found.append(run)
        return found
