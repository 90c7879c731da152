"""Groups of activities: their keys, counts and metrics, and the activities of each."""

import pytest
from tests.unit.server.catalogue.activities.conftest import ManyActivities

from clew.documents.project.activities import ActivityGroup, MetricRange
from clew.errors import UsageError
from clew.server.catalogue.activities.conditions import parse_conditions
from clew.server.catalogue.activities.groups import (
    group_activities,
    is_in_group,
    parse_grouping,
)


@pytest.fixture
def filled(many: ManyActivities) -> ManyActivities:
    many.add_execution("--lr", "0.1", "--opt", "adam", acc=0.5)
    many.add_execution("--lr", "0.1", "--opt", "sgd", acc=0.75, status=1)
    many.add_execution("--lr", "auto", acc=float("nan"))
    many.add_run(acc=0.25)
    many.refresh()
    return many


def _group(many: ManyActivities, by: str, query: str = "") -> list[ActivityGroup]:
    graph = many.project.graph
    found = group_activities(
        graph, parse_conditions(query), parse_grouping(graph, by), metrics=["acc", "x"]
    )
    assert found.left_out == 0
    return list(found.groups)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("params.lr", {"0.5": "r1", "auto": "e3", "0.1": "e2 e1"}),
        ("params.opt", {None: "r1 e3", "sgd": "e2", "adam": "e1"}),
        ("name", {"iris": "r1", None: "e3 e2 e1"}),
        ("type", {"run": "r1", "execution": "e3 e2 e1"}),
        ("state", {"succeeded": "r1", "done": "e3 e1", "failed": "e2"}),
        ("git", {None: "r1 e3 e2 e1"}),
        ("experiment", {None: "r1 e3 e2 e1"}),
    ],
)
def test_groups_divide_the_activities(
    filled: ManyActivities, by: str, expected: dict[str | None, str]
) -> None:
    groups = _group(filled, by)
    assert [group.label for group in groups] == list(expected)  # the newest first
    for group, ids in zip(groups, expected.values(), strict=True):
        assert filled.ids(more=[is_in_group(by, group.key)]) == ids
        assert group.total == sum(group.states.values()) == len(ids.split())


def test_a_group_has_the_range_of_finite_metrics(filled: ManyActivities) -> None:
    run, text, number = _group(filled, "params.lr")
    assert number.metrics == {"acc": MetricRange(min=0.5, max=0.75, mean=0.625)}
    assert number.states == {"done": 1, "failed": 1}
    assert text.metrics == {}
    assert run.seconds == 2
    assert [group.total for group in _group(filled, "params.lr", "state:failed")] == [1]


def test_an_activity_is_in_the_group_of_each_of_its_tags(filled: ManyActivities) -> None:
    filled.project.tag("e1", "best", "old")
    filled.project.tag("e2", "best")
    filled.project.tag("e1", remove=["old"])
    groups = {group.key: group.total for group in _group(filled, "tag")}
    assert groups == {None: 2, "best": 2}
    assert filled.ids(more=[is_in_group("tag", "best")]) == "e2 e1"
    assert filled.ids(more=[is_in_group("tag", None)]) == "r1 e3"


def test_an_unknown_grouping_is_refused(filled: ManyActivities) -> None:
    with pytest.raises(UsageError):
        parse_grouping(filled.project.graph, "password")
    with pytest.raises(UsageError):
        is_in_group("x.id = 1 OR 1", "1")
