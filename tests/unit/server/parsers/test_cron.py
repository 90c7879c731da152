"""Cron ticks. The property tests compare with brute force: they try every second, or every day."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.server.parsers.cron import SECOND, check, next_tick

Field = tuple[str, frozenset[int], bool]
MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2110, 1, 1)).map(  # noqa: DTZ001
    lambda found: found.replace(tzinfo=UTC)
)


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def next_of(cron: str, moment: str) -> str | None:
    found = next_tick(cron, after=ns(moment))
    return None if found is None else f"{datetime.fromtimestamp(found // SECOND, UTC):%F %T}"


@pytest.mark.parametrize(
    ("cron", "moment", "expected"),
    [
        ("* * * * * *", "2026-11-15 10:00:00", "2026-11-15 10:00:01"),
        ("0 * * * * ?", "2026-11-15 10:00:00", "2026-11-15 10:01:00"),
        ("0 0 0 * * *", "2026-12-31 23:59:59", "2027-01-01 00:00:00"),
        ("15,45 */20 8-10/2 * * *", "2026-11-15 08:40:45", "2026-11-15 10:00:15"),
        ("0 30 9 ? * MON-FRI", "2026-11-13 09:30:00", "2026-11-16 09:30:00"),
        ("0 0 0 1 jan,JUL *", "2026-02-01 00:00:00", "2026-07-01 00:00:00"),
        ("0 50/5 * * * *", "2026-11-15 10:56:00", "2026-11-15 11:50:00"),
        ("0 0 0 29 2 *", "2026-01-01 00:00:00", "2028-02-29 00:00:00"),
        ("0 0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"),
        # Either day is enough where both are restricted; both must hold where one is open.
        ("0 0 0 13 * FRI", "2026-11-01 00:00:00", "2026-11-06 00:00:00"),
        ("0 0 0 ? * FRI", "2026-11-06 00:00:00", "2026-11-13 00:00:00"),
        ("0 0 0 */2 * FRI", "2026-11-01 00:00:00", "2026-11-13 00:00:00"),
        ("0 0 0 13,* * FRI", "2026-11-01 00:00:00", "2026-11-06 00:00:00"),
        ("0 0 0 * * 3/2", "2026-11-13 00:00:00", "2026-11-18 00:00:00"),
        ("@hourly", "2026-11-15 10:00:00", "2026-11-15 11:00:00"),
        ("@daily", "2026-11-15 10:00:00", "2026-11-16 00:00:00"),
        ("@midnight", "2026-11-15 10:00:00", "2026-11-16 00:00:00"),
        ("@weekly", "2026-11-15 10:00:00", "2026-11-22 00:00:00"),
        ("@monthly", "2026-11-15 10:00:00", "2026-12-01 00:00:00"),
        ("@yearly", "2026-11-15 10:00:00", "2027-01-01 00:00:00"),
        ("@annually", "2026-11-15 10:00:00", "2027-01-01 00:00:00"),
        ("@every 1h30m10s", "2026-11-15 10:00:00", "2026-11-15 11:30:10"),
        ("@every 1.5h", "2026-11-15 10:00:00", "2026-11-15 11:30:00"),
        ("@every 10ms", "2026-11-15 10:00:00", "2026-11-15 10:00:01"),
        ("* * * * * *", "9999-12-31 23:59:59", None),
    ],
)
def test_the_next_tick(cron: str, moment: str, expected: str | None) -> None:
    assert next_of(cron, moment) == expected


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "fields"),
        ("* * * *", "4 fields"),
        ("30 9 * * 1", "five fields"),
        ("* * * * * * *", "7 fields"),
        ("60 * * * * *", "second"),
        ("* 60 * * * *", "minute"),
        ("* * 24 * * *", "hour"),
        ("* * * 0 * *", "day-of-month"),
        ("* * * 32 * *", "day-of-month"),
        ("* * * * 13 *", "month"),
        ("* * * * foo *", "month"),
        ("* * * * * 8", "day-of-week"),
        ("0 0 0 31 2 *", "day-of-month"),
        ("*/0 * * * * *", "second"),
        ("*/x * * * * *", "second"),
        ("5-1 * * * * *", "second"),
        ("1-2-3 * * * * *", "second"),
        ("1/2/3 * * * * *", "second"),
        ("1,,2 * * * * *", "second"),
        ("-1 * * * * *", "second"),
        ("*-5 * * * * *", "second"),
        ("١ * * * * *", "second"),
        ("CRON_TZ=Europe/Vienna 0 0 9 * * *", "UTC"),
        ("TZ=UTC 0 0 9 * * *", "UTC"),
        ("@fortnightly", "descriptor"),
        ("@every", "duration"),
        ("@every soon", "duration"),
        ("@every -5m", "duration"),
        ("* " * 200, "too long"),
    ],
)
def test_a_malformed_cron_expression_names_the_position(cron: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        check(cron)
    assert refused.value.hint


def test_five_fields_are_answered_with_the_cure() -> None:
    with pytest.raises(UsageError) as refused:
        check("30 9 * * 1")
    assert next_of(refused.value.hint, "2026-11-15 00:00:00") == "2026-11-16 09:30:00"


@st.composite
def fields(draw: st.DrawFn, least: int, most: int) -> Field:
    """A field, what it allows, and whether it is open, built side by side."""
    texts, values, is_open = [], set[int](), False
    for _ in range(draw(st.integers(1, 3))):
        low = draw(st.integers(least, most))
        high = draw(st.integers(low, most))
        step = draw(st.integers(1, most))
        text, found = draw(
            st.sampled_from(
                [
                    ("*", range(least, most + 1)),
                    ("?", range(least, most + 1)),
                    (f"*/{step}", range(least, most + 1, step)),
                    (f"{low}", range(low, low + 1)),
                    (f"{low}-{high}", range(low, high + 1)),
                    (f"{low}-{high}/{step}", range(low, high + 1, step)),
                    (f"{low}/{step}", range(low, most + 1, step)),
                ]
            )
        )
        texts.append(text)
        values.update(found)
        is_open |= text[0] in "*?"
    return ",".join(texts), frozenset(values), is_open


@given(fields(0, 59), fields(0, 59), fields(0, 23), MOMENTS)
def test_within_a_day_no_second_is_left_out(
    second: Field,
    minute: Field,
    hour: Field,
    moment: datetime,
) -> None:
    cron = f"{second[0]} {minute[0]} {hour[0]} * * *"
    found = next_tick(cron, after=int(moment.timestamp()) * SECOND)
    assert found is not None
    at = moment.replace(microsecond=0) + timedelta(seconds=1)
    while at.hour not in hour[1]:
        at = at.replace(minute=0, second=0) + timedelta(hours=1)
    while at.hour not in hour[1] or at.minute not in minute[1]:
        at = at.replace(second=0) + timedelta(minutes=1)
    while at.hour not in hour[1] or at.minute not in minute[1] or at.second not in second[1]:
        at += timedelta(seconds=1)
    assert datetime.fromtimestamp(found // SECOND, UTC) == at


@given(fields(1, 31), fields(1, 12), fields(0, 6), MOMENTS)
def test_no_day_is_left_out(
    day: Field,
    month: Field,
    weekday: Field,
    moment: datetime,
) -> None:
    cron = f"0 0 0 {day[0]} {month[0]} {weekday[0]}"
    try:
        found = next_tick(cron, after=int(moment.timestamp()) * SECOND)
    except UsageError:  # no such day in any of these months
        found = None

    def ticks(at: datetime) -> bool:
        by_month, by_week = at.day in day[1], (at.weekday() + 1) % 7 in weekday[1]
        either = by_month or by_week
        right = by_month and by_week if day[2] or weekday[2] else either
        return at.month in month[1] and right

    at = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(41 * 366):
        at += timedelta(days=1)
        if ticks(at):
            break
    else:
        assert found is None
        return
    assert found is not None
    assert datetime.fromtimestamp(found // SECOND, UTC) == at


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = next_tick(text, after=0)
    except UsageError:
        return
    assert found is None or found > 0
