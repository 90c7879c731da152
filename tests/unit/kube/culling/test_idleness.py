"""What is idle, and what only looks like it."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.sample_resources import NOW, notebook, pod, tensorboard

from clew.kube.controller.model import STOPPED
from clew.kube.controller.options import Culling
from clew.kube.culling.idleness import (
    IDLE_MINUTES,
    LAST_ACTIVITY,
    LAST_CHECK,
    OTHER_LAST_ACTIVITY,
    Activity,
    decide,
    limit_of,
    parse_jupyter_activity,
)
from clew.kube.objects import Json, format_time, parse_time

HOUR = timedelta(hours=1)
CULLING = Culling(idle=HOUR, period=timedelta(minutes=1))
POD = pod("first-0", startTime=format_time(NOW - 10 * HOUR))


def used(ago: timedelta, **more: str) -> Json:
    return notebook(
        annotations={LAST_ACTIVITY: format_time(NOW - ago), LAST_CHECK: format_time(NOW), **more}
    )


def test_what_is_idle_is_stopped_in_one_write() -> None:
    verdict = decide(used(2 * HOUR), POD, Activity(last=NOW - 2 * HOUR), NOW, CULLING)
    assert verdict.cull
    assert verdict.annotations == {STOPPED: format_time(NOW), LAST_ACTIVITY: None, LAST_CHECK: None}


def test_what_is_busy_is_not_idle() -> None:
    verdict = decide(used(2 * HOUR), POD, Activity(True, NOW - 2 * HOUR), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {LAST_ACTIVITY: format_time(NOW), LAST_CHECK: format_time(NOW)}


def test_what_cannot_be_asked_is_not_idle() -> None:
    verdict = decide(used(2 * HOUR), POD, None, NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {}


def test_use_never_moves_backwards() -> None:
    verdict = decide(used(HOUR / 2), POD, Activity(last=NOW - 3 * HOUR), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {}


def test_what_stays_idle_is_not_written_to() -> None:
    verdict = decide(used(HOUR / 2), POD, Activity(last=NOW - HOUR / 2), NOW, CULLING)
    assert verdict.annotations == {}


def test_the_first_look_counts_as_use() -> None:
    verdict = decide(notebook(), POD, Activity(last=NOW - 9 * HOUR), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations[LAST_ACTIVITY] == format_time(NOW)


def test_a_start_counts_as_use() -> None:
    young = pod("first-0", startTime=format_time(NOW - HOUR / 2))
    assert not decide(used(9 * HOUR), young, Activity(), NOW, CULLING).cull


@pytest.mark.parametrize("around", [{"pod": None}, {"stopped": ""}])
def test_what_is_stopped_is_counted_no_more(around: dict[str, str | None]) -> None:
    stopped = {STOPPED: ""} if "stopped" in around else {}
    found = None if "pod" in around else POD
    verdict = decide(used(9 * HOUR, **stopped), found, Activity(), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {LAST_ACTIVITY: None, LAST_CHECK: None}


def test_a_clock_that_is_ahead_does_not_count() -> None:
    verdict = decide(used(HOUR / 2), POD, Activity(last=NOW + 9 * HOUR), NOW, CULLING)
    assert verdict.annotations[LAST_ACTIVITY] == format_time(NOW)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ("5", timedelta(minutes=5)),
        (" 0.5 ", timedelta(seconds=30)),
        ("never", None),
        ("0", HOUR),
        ("-3", HOUR),
        ("soon", HOUR),
        ("1e400", HOUR),
        ("nan", HOUR),
    ],
)
def test_each_may_have_its_own_limit(said: str, limit: timedelta | None) -> None:
    assert limit_of(notebook(annotations={IDLE_MINUTES: said}), CULLING) == limit


def test_what_is_never_culled() -> None:
    verdict = decide(used(99 * HOUR, **{IDLE_MINUTES: "never"}), POD, Activity(), NOW, CULLING)
    assert not verdict.cull


def test_a_tensorboard_has_a_note_of_its_own() -> None:
    board = tensorboard("pvc://data")
    assert decide(board, POD, Activity(), NOW, CULLING).annotations == {
        OTHER_LAST_ACTIVITY: format_time(NOW)
    }
    board["metadata"]["annotations"] = {OTHER_LAST_ACTIVITY: format_time(NOW - 2 * HOUR)}
    verdict = decide(board, POD, Activity(), NOW, CULLING)
    assert verdict.cull
    assert verdict.annotations == {}


TIMES = st.floats(0, 1e6).map(lambda seconds: NOW - timedelta(seconds=seconds))


@given(before=TIMES, last=TIMES, busy=st.booleans())
def test_the_note_never_goes_back(before: datetime, last: datetime, busy: bool) -> None:
    resource = notebook(annotations={LAST_ACTIVITY: format_time(before)})
    note = decide(resource, POD, Activity(busy, last), NOW, CULLING).annotations.get(LAST_ACTIVITY)
    assert note is None or (parse_time(note) or NOW) > before.replace(microsecond=0)


def kernel(state: str, ago: timedelta) -> Json:
    return {"execution_state": state, "last_activity": format_time(NOW - ago)}


def test_jupyter_s_kernels_terminals_and_calls_all_count() -> None:
    idle = kernel("idle", 3 * HOUR)
    terminal = {"name": "1", "last_activity": format_time(NOW - 2 * HOUR)}
    status = {"last_activity": "2026-03-01T11:00:00.123456Z", "kernels": 1}
    assert parse_jupyter_activity([idle], None, None) == Activity(False, NOW - 3 * HOUR)
    assert parse_jupyter_activity([idle], [terminal], None) == Activity(False, NOW - 2 * HOUR)
    found = parse_jupyter_activity([idle], [terminal], status)
    assert found.last is not None
    assert found.last.replace(microsecond=0) == NOW - HOUR
    assert parse_jupyter_activity([idle, kernel("busy", 3 * HOUR)], [], {}).busy
    assert parse_jupyter_activity([kernel("starting", HOUR)], [], {}).busy
    assert parse_jupyter_activity([], [], {}) == Activity()
    assert (
        parse_jupyter_activity(["nonsense", {"execution_state": "idle"}], {"x": 1}, "y")
        == Activity()
    )
