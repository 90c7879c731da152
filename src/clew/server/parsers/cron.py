"""Kubeflow Pipelines' cron expressions, evaluated in UTC by `cronsim`.

An expression has six fields, seconds first, or is a descriptor (`@hourly`, `@every 90s`). If both
day fields are restricted, a day must match one of them; if one is open (`*`, `?`, `*/2`), a day
must match both. Kubeflow's parser also takes five fields and reads the first as seconds. People who
write five fields mean minutes first, so five fields are an error whose hint is the fix.
"""

import re
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from clew.errors import UsageError

SECOND = 1_000_000_000
"""Nanoseconds."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DESCRIPTORS = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|us|µs|ns|h|m|s)", re.ASCII)
_OPEN_RANGE = re.compile(r"(?:(?<=,)|^)(\w+)/")
_RANGE_OF_ONE = re.compile(r"\b(\w+)-\1/[1-9]\d*\b", re.ASCII)
_MAX_LENGTH = 200
_HINT = "six fields, seconds first: 0 30 9 * * MON-FRI"


def check(text: str) -> None:
    """Raise UsageError if `text` is not a cron expression."""
    if not text.strip().startswith("@every"):
        _simulate(text, _EPOCH)
    else:
        _parse_every(text)


def next_tick(text: str, *, after: int) -> int | None:
    """The first tick later than `after`; None if there is none. Times are nanoseconds, UTC."""
    seconds = after // SECOND
    if text.strip().startswith("@every"):
        return (seconds + _parse_every(text)) * SECOND
    try:
        tick = next(_simulate(text, _EPOCH + timedelta(seconds=seconds)))
    except (StopIteration, OverflowError):  # OverflowError: beyond the year 9999
        return None
    return (tick - _EPOCH) // timedelta(seconds=1) * SECOND


def _simulate(text: str, start: datetime) -> CronSim:
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        raise UsageError("the cron expression is too long", hint=_HINT)
    if text.upper().startswith(("TZ=", "CRON_TZ=")):
        raise UsageError(
            f"cron {text!r}: time zones are not supported; cron is evaluated in UTC",
            hint="write the hours in UTC, without TZ=",
        )
    if text.startswith("@") and text not in _DESCRIPTORS:
        raise UsageError(f"cron {text!r}: unknown descriptor", hint=", ".join(_DESCRIPTORS))
    fields = _DESCRIPTORS.get(text, text).replace("?", "*").split()
    if len(fields) == 5:
        raise UsageError(
            f"cron {text!r} has five fields; six are needed, seconds first", hint=f"0 {text}"
        )
    if len(fields) != 6:
        raise UsageError(f"cron {text!r} has {len(fields)} fields, not six", hint=_HINT)
    # Three details in which cronsim differs from Kubeflow: it reads 5-5/2 as 5/2, looks for an open
    # day only at the start of the field, and ends a week with Sunday as 7.
    fields = [_RANGE_OF_ONE.sub(r"\1", field) for field in fields]
    for day in (3, 5):
        parts = fields[day].split(",")
        fields[day] = ",".join(sorted(parts, key=lambda part: not part.startswith("*")))
    fields[5] = _OPEN_RANGE.sub(r"\1-6/", fields[5])
    try:
        return CronSim(" ".join(fields), start)
    except CronSimError as error:
        raise UsageError(f"cron {text!r}: {error}", hint=_HINT) from error


def _parse_every(text: str) -> int:
    """The seconds of `@every 1h30m`, rounded down to whole seconds, at least 1."""
    duration = text.strip().removeprefix("@every").strip()
    parts = _DURATION_PART.findall(duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise UsageError(f"cron {text!r} has no valid duration", hint="@every 1h30m")
    return max(int(sum(float(number) * _UNITS[unit] for number, unit in parts)), 1)
