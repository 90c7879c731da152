"""Decides which leases have expired, as seen by one worker that wants to claim runs.

That the time of a lease has passed does not mean that its holder is gone: while the database did
not answer, no holder could renew. So the worker must also have seen the lease unchanged for some
seconds during which the database always answered. A living holder would have renewed it by then.
"""

from collections.abc import Iterable

from clew.documents.ids import Uid

GRACE_SECONDS = 8.0
"""A living holder renews within this time: it tries every second, and a connection attempt times
out after 5 s."""


class LeaseWatcher:
    """Observes the leases of all runs over time."""

    def __init__(self, grace: float = GRACE_SECONDS) -> None:
        self._grace = grace
        self._seen: dict[Uid, tuple[int, float]] = {}
        self._last_check = 0.0

    def expired(self, held: Iterable[tuple[Uid, int]], *, now: int, clock: float) -> list[Uid]:
        """The runs whose leases have expired.

        `held`: all held runs and the ends of their leases, 0 if released; `now`: the time in ns;
        `clock`: monotonic time in seconds.
        """
        if clock - self._last_check > self._grace / 2:
            self._seen.clear()  # the database did not answer in between
        self._last_check = clock
        previous, self._seen = self._seen, {}
        expired = []
        for run, lease in held:
            previous_lease, since = previous.get(run, (lease, clock))
            since = since if previous_lease == lease else clock
            self._seen[run] = (lease, since)
            if lease == 0 or (lease < now and clock - since >= self._grace):
                expired.append(run)
        return expired
