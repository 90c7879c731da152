"""Pages, filters and orders, as a client asks for them, on either database."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.db.connection_interface import Row
from clew.errors import UsageError
from clew.pipelines.runs import run_queue
from clew.pipelines.runs.run_queue import NewRun
from clew.prov.graph import Graph
from clew.server.catalogue.list_fields import EXPERIMENTS, PIPELINES, RUNS
from clew.server.catalogue.list_pages import Table
from clew.server.catalogue.pipelines import experiments, pipelines
from clew.server.catalogue.pipelines.versions import Metadata as Called
from clew.server.kfp.list_query import list_page
from clew.server.kfp.request_fields import Fields

SECOND = 10**9


def ask(graph: Graph, table: Table = RUNS, *, name: int = 6, **asked: Any) -> dict[str, Any]:
    """A page; each row is shown as its name."""

    def show(rows: list[Row]) -> list[dict[str, Any]]:
        return [{"name": row[name]} for row in rows]

    within = {"experiment": asked.pop("experiment")} if "experiment" in asked else {}
    return list_page(graph, table, Fields(asked), "rows", show, **within)


def names(page: dict[str, Any]) -> list[str]:
    return [row["name"] for row in page.get("rows", [])]


def everything(graph: Graph, **asked: Any) -> list[str]:
    """All pages, one after another."""
    found, token = [], ""
    while True:
        page = ask(graph, **asked, page_token=token)
        found += names(page)
        if not (token := page.get("next_page_token", "")):
            return found


def predicate(key: str, operation: str | int, **value: Any) -> str:
    return json.dumps({"predicates": [{"key": key, "operation": operation, **value}]})


def run(graph: Graph, name: str, *, created: int = 0, **more: Any) -> str:
    """A run as the catalogue makes it; then, as time would have, a row that differs."""
    experiment = more.pop("experiment", "x")
    made = run_queue.queue_run(graph, NewRun(experiment=experiment, name=name, spec="{}"))
    more = {**more, "created": created} if created else more
    for column, value in more.items():
        graph.connection.rows(f"UPDATE run_request SET {column} = ? WHERE id = ?", (value, made))
    return made


def test_an_empty_list_has_no_rows(graph: Graph) -> None:
    assert ask(graph) == {"total_size": 0}


def test_the_requested_page_size(graph: Graph) -> None:
    for number in range(25):
        run(graph, f"{number:02}")
    first = ask(graph)
    assert names(first) == [f"{number:02}" for number in range(20)]
    assert first["total_size"] == 25
    assert names(ask(graph, page_token=first["next_page_token"])) == ["20", "21", "22", "23", "24"]
    assert "next_page_token" not in ask(graph, page_size="25")
    assert len(names(ask(graph, page_size=3))) == 3
    assert len(names(ask(graph, page_size="1000"))) == 25
    assert len(names(ask(graph, pageSize="4"))) == 4
    assert everything(graph, page_size="1") == [f"{number:02}" for number in range(25)]


def test_many_of_one_moment_are_all_seen_once(graph: Graph) -> None:
    for number in range(7):
        run(graph, f"{number}", created=5 * SECOND)
    for way in ("asc", "desc"):
        assert sorted(everything(graph, page_size="2", sort_by=f"created_at {way}")) == [
            str(number) for number in range(7)
        ]


@pytest.mark.parametrize("way", ["asc", "desc"])
def test_what_is_added_and_deleted_meanwhile_neither_repeats_nor_hides(
    graph: Graph, way: str
) -> None:
    made = {number: run(graph, str(number), created=number * SECOND) for number in range(10, 20)}
    first = ask(graph, page_size="4", sort_by=f"created_at {way}")
    expected = [str(number) for number in range(10, 20)]
    expected = expected if way == "asc" else expected[::-1]
    assert names(first) == expected[:4]
    run(graph, "before", created=1 * SECOND)
    run(graph, "after", created=99 * SECOND)
    run_queue.delete_request(graph, made[int(expected[0])])
    run_queue.delete_request(graph, made[int(expected[3])])  # the very one the page ended with
    found = names(ask(graph, page_size="200", page_token=first["next_page_token"]))
    assert found == [*expected[4:], "after" if way == "asc" else "before"]


def test_orders(graph: Graph) -> None:
    run(graph, "b", created=1 * SECOND, finished=30 * SECOND, state="succeeded")
    run(graph, "c", created=2 * SECOND)
    run(graph, "a", created=3 * SECOND, finished=10 * SECOND, state="failed")
    assert names(ask(graph, sort_by="")) == ["b", "c", "a"]
    assert names(ask(graph, sort_by="created_at DESC")) == ["a", "c", "b"]
    assert names(ask(graph, sort_by="display_name")) == ["a", "b", "c"]
    assert names(ask(graph, sort_by="name desc")) == ["c", "b", "a"]
    assert everything(graph, sort_by="finished_at", page_size="1") == ["c", "a", "b"]
    assert everything(graph, sort_by="finished_at desc", page_size="1") == ["b", "a", "c"]
    assert everything(graph, sort_by="state", page_size="1") == ["a", "c", "b"]
    for field in RUNS.fields:
        for way in ("asc", "desc"):
            found = everything(graph, sort_by=f"{field} {way}", page_size="1")
            assert sorted(found) == ["a", "b", "c"], field
    for wrong in (
        "size",
        "created_at down",
        "created_at desc id",
        "created_at; DROP TABLE run_request",
        " ",
    ):
        with pytest.raises(UsageError, match="sort_by"):
            ask(graph, sort_by=wrong)


@pytest.mark.parametrize(
    ("key", "operation", "value", "expected"),
    [
        ("display_name", "EQUALS", {"stringValue": "ab"}, ["ab"]),
        ("display_name", 1, {"string_value": "ab"}, ["ab"]),
        ("name", "NOT_EQUALS", {"stringValue": "ab"}, ["Abc", "x_y"]),
        ("display_name", 2, {"stringValue": "ab"}, ["Abc", "x_y"]),
        ("display_name", "IS_SUBSTRING", {"stringValue": "AB"}, ["ab", "Abc"]),
        ("display_name", 9, {"stringValue": "_"}, ["x_y"]),
        ("display_name", 9, {"stringValue": "%"}, []),
        ("display_name", 9, {"stringValue": "!"}, []),
        ("display_name", "IN", {"stringValues": {"values": ["ab", "x_y"]}}, ["ab", "x_y"]),
        ("display_name", 8, {"string_values": {"values": []}}, []),
        ("created_at", "GREATER_THAN", {"timestampValue": "1970-01-01T00:00:02Z"}, ["x_y"]),
        ("created_at", 5, {"timestampValue": "1970-01-01T00:00:02Z"}, ["Abc", "x_y"]),
        ("created_at", "LESS_THAN", {"timestampValue": "1970-01-01T00:00:02Z"}, ["ab"]),
        ("created_at", 7, {"timestampValue": "1970-01-01T01:00:02+01:00"}, ["ab", "Abc"]),
        ("created_at", "EQUALS", {"longValue": "2"}, ["Abc"]),
        ("created_at", 3, {"intValue": 1}, ["Abc", "x_y"]),
        ("created_at", "IN", {"longValues": {"values": ["1", "3"]}}, ["ab", "x_y"]),
        ("state", "EQUALS", {"stringValue": "PENDING"}, ["ab"]),
        ("state", "EQUALS", {"stringValue": "CANCELING"}, ["Abc"]),
        ("state", "EQUALS", {"stringValue": "RUNNING"}, []),
        ("state", "EQUALS", {"stringValue": "FAILED"}, ["x_y"]),
        ("state", "IN", {"stringValues": {"values": ["PENDING", "FAILED"]}}, ["ab", "x_y"]),
        ("storage_state", "NOT_EQUALS", {"stringValue": "ARCHIVED"}, ["ab", "Abc"]),
        ("storage_state", "EQUALS", {"stringValue": "ARCHIVED"}, ["x_y"]),
        ("experiment_id", "EQUALS", {"stringValue": "x"}, ["ab", "Abc"]),
        ("recurring_run_id", "EQUALS", {"stringValue": "s"}, ["x_y"]),
        ("recurring_run_id", "NOT_EQUALS", {"stringValue": "s"}, ["ab", "Abc"]),
        ("finished_at", "LESS_THAN", {"timestampValue": "2100-01-01T00:00:00Z"}, ["x_y"]),
        ("namespace", "EQUALS", {"stringValue": ""}, ["ab", "Abc", "x_y"]),
        ("namespace", "EQUALS", {"stringValue": "kubeflow"}, []),
        ("description", "EQUALS", {"stringValue": ""}, ["ab", "Abc", "x_y"]),
    ],
)
def test_filters(
    graph: Graph, key: str, operation: str | int, value: dict[str, Any], expected: list[str]
) -> None:
    run(graph, "ab", created=1 * SECOND)
    run(graph, "Abc", created=2 * SECOND, state="running", stop=1)
    ended = {"state": "canceled", "archived": 1, "finished": 9 * SECOND, "schedule": "s"}
    run(graph, "x_y", created=3 * SECOND, experiment="y", **ended)
    found = ask(graph, filter=predicate(key, operation, **value))
    assert names(found) == expected
    assert found["total_size"] == len(expected)


def test_several_predicates_must_all_hold(graph: Graph) -> None:
    for number in range(6):
        run(graph, f"r{number}", created=(number + 1) * SECOND, archived=number % 2)
    wanted = {
        "predicates": [
            {"operation": "EQUALS", "key": "storage_state", "stringValue": "AVAILABLE"},
            {"operation": 3, "key": "created_at", "timestampValue": "1970-01-01T00:00:01Z"},
        ]
    }
    asked = {"filter": json.dumps(wanted), "page_size": "1"}
    assert everything(graph, **asked) == ["r2", "r4"]
    token = ask(graph, **asked)["next_page_token"]
    assert names(ask(graph, page_token=token, page_size="5")) == ["r4"]
    with pytest.raises(UsageError, match="page_token"):
        ask(graph, page_token=token, filter=predicate("name", 1, stringValue="r1"))
    with pytest.raises(UsageError, match="page_token"):
        ask(graph, page_token=token, sort_by="name")


def test_a_shown_time_is_found_again(graph: Graph) -> None:
    run(graph, "a", created=1_234_567_891)
    run(graph, "b", created=1_234_568_000)
    at = {"timestampValue": "1970-01-01T00:00:01.234567Z"}
    assert names(ask(graph, filter=predicate("created_at", "EQUALS", **at))) == ["a"]
    assert names(ask(graph, filter=predicate("created_at", "GREATER_THAN", **at))) == ["b"]


@pytest.mark.parametrize(
    "wanted",
    [
        "no json",
        "[]",
        '{"predicates": {}}',
        '{"predicates": [1]}',
        '{"predicates": [{}]}',
        predicate("size", "EQUALS", stringValue="a"),
        predicate("name", "LIKE", stringValue="a"),
        predicate("name", 4, stringValue="a"),
        predicate("name", True, stringValue="a"),
        predicate("name", [], stringValue="a"),
        predicate("name", "EQUALS"),
        predicate("name", "IN", stringValue="a"),
        predicate("name", "IN", stringValues={"values": "a"}),
        predicate("name", "IN", stringValues={"values": [{}]}),
        predicate("name", "IN", stringValues={"values": ["a"] * 501}),
        predicate("name", "EQUALS", stringValue={"a": 1}),
        predicate("name", "EQUALS", stringValue="a\0b"),
        predicate("created_at", "EQUALS", stringValue="soon"),
        predicate("created_at", "EQUALS", timestampValue="9999-01-01T00:00:00Z"),
        predicate("created_at", "EQUALS", longValue=str(2**70)),
        predicate("created_at", "IS_SUBSTRING", stringValue="2030"),
        json.dumps({"predicates": [json.loads(predicate("name", 1, stringValue="a"))] * 51}),
        "[" * 100_000,
    ],
)
def test_an_invalid_filter_is_refused(graph: Graph, wanted: str) -> None:
    with pytest.raises(UsageError):
        ask(graph, filter=wanted)


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "AAAA",
        "é",
        *(
            base64.urlsafe_b64encode(json.dumps(words).encode()).decode()
            for words in (
                {}, [], ["", "", 1], ["", "", "text", "id"], ["name", "", 1, "id"],
                ["", "", 2**64, "id"], ["", "", 1, "a\0"], ["size", "", 1, "id"],
                ["", "nonsense", 1, "id"], ["", "", 1, "id", "more"], ["", "", 1.5, "id"],
            )
        ),
    ],
)  # fmt: skip
def test_a_forged_page_token_is_refused(graph: Graph, token: str) -> None:
    with pytest.raises(UsageError):
        ask(graph, page_token=token)


def test_sizes_that_make_no_sense_are_refused(graph: Graph) -> None:
    for wrong in ("-1", "many", "1.5", "99999999999999999999999", [], 1.5, True):
        with pytest.raises(UsageError):
            ask(graph, page_size=wrong)
    assert ask(graph, page_size="0") == ask(graph, page_size="") == ask(graph)


def test_a_list_stays_within_its_experiment_and_its_project(graph: Graph) -> None:
    run(graph, "here", experiment="a")
    run(graph, "there", experiment="b")
    other = Graph(graph.connection, "q" * 32)
    run(other, "elsewhere", experiment="a")
    assert names(ask(graph, experiment="a")) == ["here"]
    assert names(ask(graph)) == ["here", "there"]
    assert names(ask(other)) == ["elsewhere"]


def test_tags(graph: Graph) -> None:
    for name, tags in (
        ("a", {"team": "red", "who": 'team": "blue'}),
        ("b", {"team": "blue", "x": "ü%_"}),
        ("c", {}),
    ):
        pipelines.create(graph, Called(name=name, tags=tags))

    def tagged(key: str, operation: str, **value: Any) -> list[str]:
        return names(ask(graph, PIPELINES, name=1, filter=predicate(key, operation, **value)))

    assert tagged("tags.team", "EQUALS", stringValue="blue") == ["b"]
    assert tagged("tags.team", "NOT_EQUALS", stringValue="blue") == ["a", "c"]
    assert tagged("tags.team", "IN", stringValues={"values": ["red", "blue"]}) == ["a", "b"]
    assert tagged("tags.x", "EQUALS", stringValue="ü%_") == ["b"]
    assert tagged("tags.x", "EQUALS", stringValue="ü%%") == []
    for key, operation in (("tags", "EQUALS"), ("tags.x", "LESS_THAN"), ("tags.x", "IS_SUBSTRING")):
        with pytest.raises(UsageError):
            tagged(key, operation, stringValue="blue")


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5), max_size=12
    ),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_row_is_on_one_page(
    graph: Graph, called: list[str], size: int, descending: bool
) -> None:
    graph.connection.rows("DELETE FROM experiment")
    unique = list(dict.fromkeys(called))
    for name in unique:
        experiments.create(graph, name)
    found, token = [], ""
    while True:
        order = f"display_name {'desc' if descending else 'asc'}"
        page = ask(graph, EXPERIMENTS, name=1, sort_by=order, page_size=str(size), page_token=token)
        found += names(page)
        if not (token := page.get("next_page_token", "")):
            break
    assert sorted(found) == sorted(unique)
