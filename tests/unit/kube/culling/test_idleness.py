"""What is idle, and what only looks like it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.sample_resources import NOW, notebook, pod, tensorboard

from clew.kube.controller.model import STOPPED
from clew.kube.controller.options import Culling
from clew.kube.culling.activity import of_jupyter
from clew.kube.culling.idleness import CHECKED, LAST, LAST_OTHER, LIMIT, Activity, decide, limit_of
from clew.kube.objects import Json, moment, written

HOUR = timedelta(hours=1)
CULLING = Culling(idle=HOUR, period=timedelta(minutes=1))
POD = pod("first-0", startTime=written(NOW - 10 * HOUR))


def used(ago: timedelta, **more: str) -> Json:
    return notebook(annotations={LAST: written(NOW - ago), CHECKED: written(NOW), **more})


def test_what_is_idle_is_stopped_in_one_write() -> None:
    verdict = decide(used(2 * HOUR), POD, Activity(last=NOW - 2 * HOUR), NOW, CULLING)
    assert verdict.cull
    assert verdict.annotations == {STOPPED: written(NOW), LAST: None, CHECKED: None}


def test_what_is_busy_is_not_idle() -> None:
    verdict = decide(used(2 * HOUR), POD, Activity(True, NOW - 2 * HOUR), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {LAST: written(NOW), CHECKED: written(NOW)}


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
    assert verdict.annotations[LAST] == written(NOW)


def test_a_start_counts_as_use() -> None:
    young = pod("first-0", startTime=written(NOW - HOUR / 2))
    assert not decide(used(9 * HOUR), young, Activity(), NOW, CULLING).cull


@pytest.mark.parametrize("around", [{"pod": None}, {"stopped": ""}])
def test_what_is_stopped_is_counted_no_more(around: dict[str, str | None]) -> None:
    stopped = {STOPPED: ""} if "stopped" in around else {}
    found = None if "pod" in around else POD
    verdict = decide(used(9 * HOUR, **stopped), found, Activity(), NOW, CULLING)
    assert not verdict.cull
    assert verdict.annotations == {LAST: None, CHECKED: None}


def test_a_clock_that_is_ahead_does_not_count() -> None:
    verdict = decide(used(HOUR / 2), POD, Activity(last=NOW + 9 * HOUR), NOW, CULLING)
    assert verdict.annotations[LAST] == written(NOW)


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
    assert limit_of(notebook(annotations={LIMIT: said}), CULLING) == limit


def test_what_is_never_culled() -> None:
    verdict = decide(used(99 * HOUR, **{LIMIT: "never"}), POD, Activity(), NOW, CULLING)
    assert not verdict.cull


def test_a_tensorboard_has_a_note_of_its_own() -> None:
    board = tensorboard("pvc://data")
    assert decide(board, POD, Activity(), NOW, CULLING).annotations == {LAST_OTHER: written(NOW)}
    board["metadata"]["annotations"] = {LAST_OTHER: written(NOW - 2 * HOUR)}
    verdict = decide(board, POD, Activity(), NOW, CULLING)
    assert verdict.cull
    assert verdict.annotations == {}


TIMES = st.floats(0, 1e6).map(lambda seconds: NOW - timedelta(seconds=seconds))


@given(before=TIMES, last=TIMES, busy=st.booleans())
def test_the_note_never_goes_back(before: datetime, last: datetime, busy: bool) -> None:
    resource = notebook(annotations={LAST: written(before)})
    note = decide(resource, POD, Activity(busy, last), NOW, CULLING).annotations.get(LAST)
    assert note is None or (moment(note) or NOW) > before.replace(microsecond=0)


def kernel(state: str, ago: timedelta) -> Json:
    return {"execution_state": state, "last_activity": written(NOW - ago)}


def test_jupyter_s_kernels_terminals_and_calls_all_count() -> None:
    idle = kernel("idle", 3 * HOUR)
    terminal = {"name": "1", "last_activity": written(NOW - 2 * HOUR)}
    status = {"last_activity": "2026-03-01T11:00:00.123456Z", "kernels": 1}
    assert of_jupyter([idle], None, None) == Activity(False, NOW - 3 * HOUR)
    assert of_jupyter([idle], [terminal], None) == Activity(False, NOW - 2 * HOUR)
    found = of_jupyter([idle], [terminal], status)
    assert found.last is not None
    assert found.last.replace(microsecond=0) == NOW - HOUR
    assert of_jupyter([idle, kernel("busy", 3 * HOUR)], [], {}).busy
    assert of_jupyter([kernel("starting", HOUR)], [], {}).busy
    assert of_jupyter([], [], {}) == Activity()
    assert of_jupyter(["nonsense", {"execution_state": "idle"}], {"x": 1}, "y") == Activity()
