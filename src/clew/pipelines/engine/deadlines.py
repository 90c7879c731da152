"""Time limits of running tasks. Pure: times are arguments."""

import signal

from msgspec import Struct, field

KILL_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL."""


class Deadlines(Struct):
    """The times at which running tasks get SIGTERM, then SIGKILL."""

    _due: dict[str, tuple[float, signal.Signals]] = field(default_factory=dict)
    _limits: dict[str, int] = field(default_factory=dict)
    _exceeded: dict[str, int] = field(default_factory=dict)

    def start(self, path: str, seconds: int | None, now: float) -> None:
        if seconds is not None:
            self._limits[path] = seconds
            self._due[path] = (now + seconds, signal.SIGTERM)

    def next(self) -> float | None:
        """The time at which the next signal is due."""
        return min((when for when, _ in self._due.values()), default=None)

    def pop_expired(self, now: float) -> list[tuple[str, signal.Signals]]:
        """The signals to send now, each with the path of its task."""
        expired = [(path, number) for path, (when, number) in self._due.items() if when <= now]
        for path, _ in expired:
            self._exceeded[path] = self._limits[path]
            self._due[path] = (now + KILL_GRACE, signal.SIGKILL)
        return expired

    def end(self, path: str) -> str | None:
        """Forget a task that ended; returns the error if it exceeded its limit."""
        self._due.pop(path, None)
        self._limits.pop(path, None)
        limit = self._exceeded.pop(path, None)
        return None if limit is None else f"it took longer than its {limit} seconds"
