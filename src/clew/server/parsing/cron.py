"""When a schedule ticks: cron as Kubeflow Pipelines reads it, in UTC.

Six fields, seconds first: second, minute, hour, day of the month, month, day of the week; or a
descriptor (`@hourly`, `@every 90s`). Where both days are restricted either is enough, where one
is left open (`*`, `?`, `*/2`) both must hold. Upstream's parser takes five fields too, as if the
last were left out; whoever writes five means minutes first, so that is refused with the cure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from clew.errors import UsageError

SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HORIZON = timedelta(days=41 * 366)
"""The longest that two ticks lie apart: the 29th of February on one weekday, across 2100."""

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_NAMED = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_UNITS = {"ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1, "h": 3600 * SECOND, "m": 60 * SECOND}
_UNITS["s"] = SECOND
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|us|µs|ns|h|m|s)", re.ASCII)
_NUMBER = re.compile(r"\d{1,4}", re.ASCII)
_LONGEST = 200
_HINT = "six fields, seconds first: 0 30 9 * * MON-FRI"


@dataclass(frozen=True)
class _Field:
    name: str
    least: int
    most: int
    names: dict[str, int]


_FIELDS = (
    _Field("second", 0, 59, {}),
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of the month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field("day of the week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


@dataclass(frozen=True)
class Cron:
    """A schedule. `after` is all there is to ask of it."""

    seconds: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    both: bool = True
    """Whether a day must be right by the month and by the week."""
    every: int = 0
    """Nanoseconds from tick to tick, where that is all."""

    def after(self, moment: int) -> int | None:
        """The first tick later than `moment`, in nanoseconds; None: there is none any more."""
        whole = moment // SECOND
        if self.every:
            return whole * SECOND + self.every
        try:
            start = _EPOCH + timedelta(seconds=whole + 1)
            found = self._from(start, start + _HORIZON)
        except OverflowError:  # beyond the year 9999
            return None
        return None if found is None else (found - _EPOCH) // timedelta(seconds=1) * SECOND

    def _from(self, start: datetime, end: datetime) -> datetime | None:
        day, at = start.date(), self._time(start.time())
        while day <= end.date():
            if day.month not in self.months:
                day, at = _next_month(day), self._time(time())
                continue
            if at is not None and self._on(day):
                return datetime.combine(day, at, tzinfo=UTC)
            day, at = day + timedelta(days=1), self._time(time())
        return None

    def _on(self, day: date) -> bool:
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month and by_week if self.both else by_month or by_week

    def _time(self, least: time) -> time | None:
        """The first tick of a day that is not before `least`."""
        if least.hour in self.hours:
            second = _first(self.seconds, least.second)
            if least.minute in self.minutes and second is not None:
                return time(least.hour, least.minute, second)
            minute = _first(self.minutes, least.minute + 1)
            if minute is not None:
                return time(least.hour, minute, self.seconds[0])
        hour = _first(self.hours, least.hour + 1)
        return None if hour is None else time(hour, self.minutes[0], self.seconds[0])


def parse(text: str) -> Cron:
    """The schedule that `text` says; refused, with a sentence, where it says none."""
    words = text.strip()
    if len(words) > _LONGEST:
        raise UsageError("the cron expression is too long", hint=_HINT)
    if words.upper().startswith(("TZ=", "CRON_TZ=")):
        raise UsageError(
            f"cron {words!r}: time zones are not supported; it is read in UTC",
            hint="write the hours in UTC, without TZ=",
        )
    if words.startswith("@every"):
        return Cron(every=_duration(words))
    if words.startswith("@") and words not in _NAMED:
        raise UsageError(f"cron {words!r}: there is no such descriptor", hint=", ".join(_NAMED))
    fields = _NAMED.get(words, words).split()
    if len(fields) == len(_FIELDS) - 1:
        raise UsageError(
            f"cron {words!r} has five fields; six are needed, seconds first", hint=f"0 {words}"
        )
    if len(fields) != len(_FIELDS):
        raise UsageError(f"cron {words!r} has {len(fields)} fields, not six", hint=_HINT)
    sets = [_values(one, field) for one, field in zip(fields, _FIELDS, strict=True)]
    (seconds, _), (minutes, _), (hours, _), (days, month_open), (months, _), (weekdays, open_) = (
        sets
    )
    return Cron(
        seconds=tuple(sorted(seconds)),
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=weekdays,
        both=month_open or open_,
    )


def _values(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """What a field allows, and whether it leaves it open."""
    found: set[int] = set()
    is_open = False
    for part in text.split(","):
        body, stepped, step = part.partition("/")
        low, ranged, high = body.partition("-")
        if low in ("*", "?"):
            if ranged:
                raise _refused(field, part)
            first, last, is_open = field.least, field.most, True
        else:
            first = _number(low, field, part)
            last = _number(high, field, part) if ranged else first
            if stepped and not ranged:
                last = field.most
        if stepped and not _NUMBER.fullmatch(step):
            raise _refused(field, part)
        by = int(step) if stepped else 1
        if not by or first < field.least or last > field.most or first > last:
            raise _refused(field, part)
        found.update(range(first, last + 1, by))
    return frozenset(found), is_open


def _number(text: str, field: _Field, part: str) -> int:
    if text.lower() in field.names:
        return field.names[text.lower()]
    if not _NUMBER.fullmatch(text):
        raise _refused(field, part)
    return int(text)


def _refused(field: _Field, part: str) -> UsageError:
    return UsageError(
        f"cron: {part!r} is no {field.name}: {field.least} to {field.most} are", hint=_HINT
    )


def _duration(text: str) -> int:
    """`@every 1h30m`: whole seconds, and at least one."""
    amount = text.removeprefix("@every").strip()
    parts = _AMOUNT.findall(amount)
    if not parts or "".join(number + unit for number, unit in parts) != amount:
        raise UsageError(f"cron {text!r} says no duration", hint="@every 1h30m")
    length = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return max(int(length) // SECOND, 1) * SECOND


def _first(values: tuple[int, ...], least: int) -> int | None:
    at = bisect_left(values, least)
    return values[at] if at < len(values) else None


def _next_month(day: date) -> date:
    return day.replace(day=1) + timedelta(days=monthrange(day.year, day.month)[1])
