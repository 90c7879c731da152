"""What the scheduler extender says on a Pod is what is read from its events."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from tests.unit.kube.scheduler.requests import LABELS, make_pod
from tests.unit.kube.tasks.sample_pods import TASK

from clew.kube.controller.model import parse_event
from clew.kube.objects import Json
from clew.kube.scheduler.pod_reports import make_event
from clew.kube.tasks.placement_reason import asks_for_placement, find_placement_reason
from clew.placement.explanation import Explanation

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OTHER: Json = {
    "metadata": {"name": "other", "uid": "e1"},
    "reason": "Scheduled",
    "message": "assigned",
    "source": {"component": "scheduler"},
}


@pytest.mark.parametrize("warning", [False, True])
def test_the_reason_is_read_from_the_events(*, warning: bool) -> None:
    event = make_event(make_pod("u1", "edge"), Explanation("on edge,\n9.8 ms", warning), NOW)
    event["metadata"]["uid"] = "e2"  # from the API server
    forged = {**event, "source": {}, "reportingComponent": "me", "message": "on mars"}
    events = map(parse_event, (OTHER, event, forged))
    assert find_placement_reason(events) == "on edge, 9.8 ms"


def test_a_pod_that_nobody_placed_has_none() -> None:
    assert find_placement_reason([parse_event(OTHER)]) is None


def test_only_pods_that_ask_for_a_place_are_asked_about() -> None:
    assert not asks_for_placement(TASK)
    assert asks_for_placement(replace(TASK, labels=LABELS))
