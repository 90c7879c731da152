"""Times of Kubernetes as nanoseconds since the epoch.

Audit events have microseconds, objects whole seconds: a container that started at 11.4 s says 11.
The end of that second is taken, so that what happened before it is before it.
"""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000


def to_nanoseconds(time: datetime) -> int:
    """A time of an audit event."""
    return max(0, (time - _EPOCH) // timedelta(microseconds=1) * 1000)


def end_of_second(time: datetime) -> int:
    """A time of an object."""
    return to_nanoseconds(time) // _SECOND * _SECOND + _SECOND - 1
