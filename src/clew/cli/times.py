"""Times as users write them: `--since 2h`, `--as-of 2026-11-17T09:30`."""

import re
from datetime import datetime, timedelta

import click

_UNITS = {"s": "seconds", "min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(\d{1,6}) *(s|min|m|h|d|w)")


def parse_time(text: str | None, *, option: str) -> datetime | None:
    """`2h` ago, `today`, `yesterday`, or a date or time of ISO 8601, local unless it has a zone."""
    if text is None:
        return None
    now = datetime.now().astimezone()
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    if text in ("today", "yesterday"):
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=text == "yesterday")
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"{option} {text!r} is not a time: use 30min, 2h, 3d, 1w, today, yesterday,"
            " 2026-11-17 or 2026-11-17T09:30"
        ) from None
    return found if found.tzinfo else found.astimezone()
