"""How long tasks may take: decided from times that are handed in."""

from __future__ import annotations

import signal

from msgspec import Struct, field

KILL_GRACE = 1.0
"""Seconds that a task has to end by itself, before it is killed."""


class Deadlines(Struct):
    """Of the tasks that run: when each is to be asked to end, and then killed, until it has."""

    _due: dict[str, tuple[float, signal.Signals]] = field(default_factory=dict)
    _late: dict[str, int] = field(default_factory=dict)
    _seconds: dict[str, int] = field(default_factory=dict)

    def begin(self, path: str, seconds: int | None, now: float) -> None:
        if seconds is not None:
            self._seconds[path] = seconds
            self._due[path] = (now + seconds, signal.SIGTERM)

    def next(self) -> float | None:
        """When there is something to be done."""
        return min((when for when, _ in self._due.values()), default=None)

    def over(self, now: float) -> list[tuple[str, signal.Signals]]:
        """Which tasks are to be sent which signal now."""
        found = [(path, number) for path, (when, number) in self._due.items() if when <= now]
        for path, _ in found:
            self._late[path] = self._seconds[path]
            self._due[path] = (now + KILL_GRACE, signal.SIGKILL)
        return found

    def end(self, path: str) -> str | None:
        """The task has ended; why it was stopped, if it was."""
        self._due.pop(path, None)
        self._seconds.pop(path, None)
        late = self._late.pop(path, None)
        return None if late is None else f"it took longer than its {late} seconds"
