"""Lists of activities: every way to filter, sort and page."""

import pytest
from tests.unit.server.catalogue.activities.conftest import ManyActivities

from clew.errors import UsageError
from clew.server.catalogue.activities.conditions import parse_conditions
from clew.server.catalogue.activities.selection import count_activities, select_activities
from clew.server.catalogue.activities.sort_order import parse_sorting


@pytest.fixture
def filled(many: ManyActivities) -> ManyActivities:
    many.add_execution("--lr", "0.1", "--opt", "adam", acc=0.9)
    many.add_execution("--lr", "0.3", "--opt", "sgd", acc=0.7)
    many.add_execution("--lr", "auto", status=1)
    many.add_run(acc=0.8)
    return many


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "r1 e3 e2 e1"),
        ("SGD", "e2"),
        ("train.py lr", "e3 e2 e1"),
        ("state:failed", "e3"),
        ("type:run", "r1"),
        ("name:IRI", "r1"),
        ("metrics.acc > 0.75", "r1 e1"),
        ("metrics.acc>=0.8 params.lr=0.5", "r1"),
        ("params.opt = adam", "e1"),
        ('params."opt" != "adam"', "e2"),
        ("params.lr = auto", "e3"),
        ("seconds > 1", "r1"),
        ("made:elsewhere", ""),
        ("100%_", ""),
        ("params.lr != 0.1", "r1 e3 e2"),
        ("myseconds > 1", ""),
        ('name:"iris"', "r1"),
        ('"train.py --lr"', ""),
        ('train.py"', "e3 e2 e1"),
    ],
)
def test_a_query_selects(filled: ManyActivities, query: str, expected: str) -> None:
    assert filled.ids(query) == expected
    count = count_activities(filled.project.graph, parse_conditions(query))
    assert count == len(expected.split())


@pytest.mark.parametrize(
    ("sort", "ascending", "descending"),
    [
        ("started", "e1 e2 e3 r1", "r1 e3 e2 e1"),
        ("metrics.acc", "e2 r1 e1 e3", "e1 r1 e2 e3"),
        ("params.lr", "e1 e2 r1 e3", "r1 e2 e1 e3"),
        ("params.opt", "e1 e2", "e2 e1"),
        ("name", "r1", "r1"),
    ],
)
def test_every_column_sorts_and_what_has_no_value_is_last(
    filled: ManyActivities, sort: str, ascending: str, descending: str
) -> None:
    """The list is read in pages of two."""
    up, down = filled.ids(sort=sort, order="asc"), filled.ids(sort=sort, order="desc")
    assert up.startswith(ascending)
    assert down.startswith(descending)
    assert sorted(up.split()) == sorted(down.split()) == ["e1", "e2", "e3", "r1"]


def test_a_tag_selects(filled: ManyActivities) -> None:
    filled.project.tag("e2", "best")
    assert filled.ids("tag:best") == filled.ids(tags=["best"]) == filled.ids("best") == "e2"
    filled.project.tag("e2", remove=["best"])
    assert filled.ids("tag:best") == ""


@pytest.mark.parametrize("query", ["state:odd", "metrics.acc > high", "a " * 60])
def test_a_malformed_query_is_refused(query: str) -> None:
    with pytest.raises(UsageError):
        parse_conditions(query)


def test_a_position_of_another_list_is_refused(filled: ManyActivities) -> None:
    filled.refresh()
    graph = filled.project.graph
    sorting = parse_sorting("started", "desc")
    position = select_activities(graph, parse_conditions(), sorting, limit=1).next
    for after in (position, "AAAA", "W10"):
        with pytest.raises(UsageError):
            parse_sorting("started", "asc").decode_position(after or "")
    with pytest.raises(UsageError):
        parse_sorting("password", "asc")
