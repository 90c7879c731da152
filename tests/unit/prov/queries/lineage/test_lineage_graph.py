"""A lineage as it is drawn: steps, expansion, groups, filters, paths and gaps."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.prov.cluster.cluster_builder import SECOND, ClusterBuilder, machine_learning
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.documents.lineage.lineage_graph import LineageBox, LineageGraph
from clew.errors import NotFound
from clew.prov.graph import Graph
from clew.prov.queries.lineage.displayed_graph import Filters
from clew.prov.queries.lineage.lineage_graph import Request, trace_graph
from clew.prov.queries.targets import Target

Trace = Callable[..., LineageGraph]
PARTS = 8


@pytest.fixture
def trace(graph: Graph, target: Ask) -> Trace:
    def resolve(text: str) -> Target | None:
        try:
            return target(text)
        except NotFound:
            return None

    def ask(text: str, **options: Any) -> LineageGraph:
        return trace_graph(graph, target(text), Request(**options), resolve)

    return ask


@pytest.fixture
def chain(graph: Graph) -> None:
    """e1: raw → clean → model → report, each by one process; train also writes a log."""
    a = ExecutionBuilder("a")
    for program, source, result in (
        ("prepare", "raw", "clean"),
        ("train", "clean", "model.pkl"),
        ("report", "model.pkl", "report"),
    ):
        p = a.process(f"/bin/{program}", source)
        a.read(p, f"/w/{source}", "RAW" if source == "raw" else None)
        a.write(p, f"/w/{result}", result)
        if program == "train":
            a.write(p, "/w/log", "log")
    graph.fold(a.end().events)


@pytest.fixture
def loop(graph: Graph) -> None:
    """e1: from one file, each of the processes makes a part, and one joins all parts."""
    a = ExecutionBuilder("a")
    a.read(split := a.process("split"), "/w/all", "ALL")
    a.write(split, "/w/index", "I")
    for number in range(PARTS):
        p = a.process("/usr/bin/sort", str(number))
        a.read(p, "/w/index")
        a.write(p, f"/w/parts/{number}.csv", f"P{number}")
    join = a.process("join")
    for number in range(PARTS):
        a.read(join, f"/w/parts/{number}.csv")
    a.write(join, "/w/result", "R")
    graph.fold(a.end().events)


def ids(answer: LineageGraph) -> set[str]:
    return {box.id for box in answer.boxes}


def arrows(answer: LineageGraph) -> set[tuple[str, str]]:
    return {(arrow.start, arrow.end) for arrow in answer.arrows}


def box(answer: LineageGraph, id_: str) -> LineageBox:
    return next(one for one in answer.boxes if one.id == id_)


def groups(answer: LineageGraph) -> list[LineageBox]:
    return [one for one in answer.boxes if one.count > 1]


@pytest.mark.usefixtures("chain")
class TestChain:
    def test_the_nearest_steps_in_both_directions(self, trace: Trace) -> None:
        answer = trace("e1:clean", depth=1)
        assert ids(answer) == {
            *("e1:/w/raw@1", "e1.p1", "e1:/w/clean@1", "e1.p2"),
            *("e1:/w/model.pkl@1", "e1:/w/log@1"),
        }
        assert box(answer, "e1:/w/clean@1").marks == ("target",)
        assert box(answer, "e1:/w/model.pkl@1").kind == "model"
        assert box(answer, "e1.p2").title == "train clean"

    def test_one_direction(self, trace: Trace) -> None:
        assert ids(trace("e1:clean", direction="up")) == {"e1:/w/raw@1", "e1.p1", "e1:/w/clean@1"}
        assert "e1:/w/raw@1" not in ids(trace("e1:clean", direction="down"))

    def test_a_box_says_how_much_is_not_drawn(self, trace: Trace) -> None:
        answer = trace("e1:clean", direction="up")
        assert (box(answer, "e1:/w/clean@1").before, box(answer, "e1:/w/clean@1").after) == (0, 1)
        assert box(trace("e1:clean", depth=1), "e1:/w/model.pkl@1").after == 1

    def test_what_is_expanded_is_added_step_by_step(self, trace: Trace) -> None:
        first = trace("e1:clean", direction="up", after=["e1:/w/clean@1"])
        assert ids(first) - ids(trace("e1:clean", direction="up")) == {"e1.p2"}
        assert box(first, "e1.p2").after == 2
        second = trace("e1:clean", direction="up", after=["e1:/w/clean@1", "e1.p2"])
        assert ids(second) - ids(first) == {"e1:/w/model.pkl@1", "e1:/w/log@1"}
        back = trace("e1:report", direction="down", before=["e1:/w/report@1", "e1.p3"])
        assert ids(back) == {"e1:/w/report@1", "e1.p3", "e1:/w/model.pkl@1"}
        assert back.missing == ()

    def test_what_does_not_exist_any_more_is_reported(self, trace: Trace) -> None:
        answer = trace("e1:clean", before=["e9.p1", "e1:/gone@1"], path=("e1:/w/raw@1", "e9.p7"))
        assert set(answer.missing) == {"e9.p1", "e1:/gone@1", "e9.p7"}
        assert answer.path is None

    def test_a_path_is_added_and_named(self, trace: Trace) -> None:
        answer = trace("e1:raw", direction="up", path=("e1:/w/report@1", "e1:/w/raw@1"))
        assert answer.path is not None
        assert answer.path.shortest == (
            *("e1:/w/raw@1", "e1.p1", "e1:/w/clean@1", "e1.p2"),
            *("e1:/w/model.pkl@1", "e1.p3", "e1:/w/report@1"),
        )
        assert set(answer.path.shortest) <= ids(answer)
        none = trace("e1:raw", path=("e1:/w/log@1", "e1:/w/report@1"))
        assert none.path is not None
        assert none.path.boxes == ()

    def test_ways_lead_through_what_is_filtered_out(self, trace: Trace) -> None:
        answer = trace("e1:model.pkl", filters=Filters(hide=frozenset({"process"})))
        assert ("e1:/w/clean@1", "e1:/w/model.pkl@1") in arrows(answer)
        assert ("e1:/w/model.pkl@1", "e1:/w/report@1") in arrows(answer)
        assert answer.filtered == 3
        assert {one.kind: one.count for one in answer.kinds}["process"] == 3

    def test_filter_by_time(self, trace: Trace) -> None:
        everything = trace("e1:model.pkl")
        assert everything.earliest is not None
        assert everything.latest is not None
        late = datetime(2100, 1, 1, tzinfo=UTC)
        assert ids(trace("e1:model.pkl", filters=Filters(since=late))) == {"e1:/w/model.pkl@1"}
        assert ids(trace("e1:model.pkl", filters=Filters(until=late))) == ids(everything)

    def test_an_execution_points_to_what_it_began_with(self, trace: Trace) -> None:
        answer = trace("e1")
        assert box(answer, "e1").kind == "execution"
        assert box(answer, "e1").marks == ("target",)
        assert ("e1", "e1.p1") not in arrows(answer)  # raw leads there
        assert len(answer.roots) == 3


@pytest.mark.usefixtures("loop")
class TestGroups:
    def test_like_nodes_are_one_box(self, trace: Trace) -> None:
        answer = trace("e1:result")
        assert {(g.title, g.subtitle, g.count) for g in groups(answer)} == {
            (f"{PARTS} × sort", "such as sort 0", PARTS),
            (f"{PARTS} files", "in /w/parts", PARTS),
        }
        assert answer.total == 2 * PARTS + 3

    def test_a_group_opens_and_its_members_have_a_frame(self, trace: Trace) -> None:
        closed = next(g for g in groups(trace("e1:result")) if g.kind == "process")
        answer = trace("e1:result", opened=[closed.members[2]])
        assert [frame.id for frame in answer.frames] == [closed.id]
        assert {one.id for one in answer.boxes if one.frame == closed.id} == set(closed.members)
        assert len(groups(answer)) == 1

    def test_a_group_is_followed_as_a_whole(self, trace: Trace) -> None:
        up = trace("e1:result", direction="up", depth=1)
        [parts] = groups(up)
        assert parts.before == PARTS
        more = trace("e1:result", direction="up", depth=1, before=[parts.id])
        assert {g.kind: g.before for g in groups(more)} == {"data": 0, "process": 1}
        both = [g.id for g in groups(more)]
        most = trace("e1:result", direction="up", depth=1, before=both)
        assert "e1:/w/index@1" in ids(most)

    def test_without_groups_every_node_is_a_box(self, trace: Trace) -> None:
        answer = trace("e1:result", grouped=False)
        assert len(answer.boxes) == answer.total
        assert not groups(answer)


def test_files_of_packages_are_counted_and_grouped_on_demand(graph: Graph, trace: Trace) -> None:
    a = ExecutionBuilder("a")
    p = a.process("python", "x.py")
    for number in range(6):
        a.read(p, f"/usr/lib/py/{number}.py", f"L{number}", package="pkg:pypi/numpy@2.0")
    a.read(p, "/w/in", "IN")
    a.write(p, "/w/out", "OUT")
    graph.fold(a.end().events)
    assert trace("e1:out").hidden_files == 6
    [package] = groups(trace("e1:out", everything=True))
    assert (package.kind, package.title, package.subtitle) == ("package", "6 files", "of numpy")


def test_breaks_in_the_chain_are_visible(graph: Graph, trace: Trace) -> None:
    a = ExecutionBuilder("a")
    a.write(a.process("make"), "/w/data", "A" * 100)
    graph.fold(a.end().events)
    b = ExecutionBuilder("b", at=10_000)
    p = b.process("use")
    b.read(p, "/w/data", "B" * 100)
    b.read(p, "/w/copy", "A" * 100)
    b.write(p, "/w/out", "O")
    b.gap(p, "network", "it was not watched", "/w/socket")
    b.gap(b.uid, "events-lost", "the ring was full")
    graph.fold(b.end().events)
    answer = trace("e2:out", direction="up")
    assert box(answer, "e2:/w/data@1").marks == ("changed_outside",)
    assert "same_content" in box(answer, "e2:/w/copy@1").marks
    assert "gap" in box(answer, "e2.p1").marks
    assert {(gap.id, gap.what, gap.path) for gap in answer.gaps} == {
        ("e2.p1", "network", "/w/socket"),
        ("e2", "events-lost", None),
    }
    [inferred] = [arrow for arrow in answer.arrows if arrow.inferred]
    assert (inferred.start, inferred.end) == ("e1:/w/data@1", "e2:/w/copy@1")


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "\u202egnp.exe", "a\nb\x1b[31m", "é" * 300, "group:x"]
)
def test_hostile_names_stay_text_of_one_line(graph: Graph, trace: Trace, name: str) -> None:
    a = ExecutionBuilder("a")
    p = a.process(name, name)
    a.read(p, f"/w/{name}", "IN")
    a.write(p, "/w/out", "OUT")
    graph.fold(a.end().events)
    answer = trace("e1:out", direction="up")
    assert len(answer.boxes) == 3
    for one in answer.boxes:
        assert one.title.isprintable()
        assert len(one.title) <= 120


def test_an_activity_without_a_number_is_followed_by_its_uid(graph: Graph, trace: Trace) -> None:
    from clew.prov.events import Generated, Started, Used, Version

    uid = "a" * 32
    source = Version("s3://bucket/in.csv", uid, 1)
    made = Version("s3://bucket/out.csv", "pod-7", 1)
    shared = {"execution": uid, "at": 5}
    graph.fold(
        [
            Started(n=1, activity=uid, kind="execution", command=("x",), **shared),
            Started(n=2, activity="pod-7", kind="pod", name="train-7", **shared),
            Used(n=3, activity="pod-7", version=source, how="read", **shared),
            Generated(n=4, activity="pod-7", version=made, how="write", **shared),
        ]
    )
    answer = trace("e1:s3://bucket/out.csv", direction="up", depth=1)
    pod = box(answer, "e1.pod-7")
    assert (pod.kind, pod.title) == ("pod", "train-7")
    assert box(answer, "e1:s3://bucket/in.csv@1").kind == "object"
    assert "e1:s3://bucket/in.csv@1" in ids(trace("e1.pod-7", before=["e1.pod-7"], depth=1))


def test_a_pod_with_one_container_is_one_box(graph: Graph, trace: Trace) -> None:
    cluster = ClusterBuilder()
    pods = machine_learning(cluster)
    pods["train"].gap("reads", "the layer was restarted")
    cluster.fold(graph)
    drawn = trace("pod/team/train", direction="up", depth=10)
    (train,) = [box for box in drawn.boxes if box.title == "team/train"]
    assert drawn.target == train.id
    assert "gap" in train.marks
    until = pods["other"].started - SECOND
    before = trace("pvc://team/data", direction="up", until=until)
    assert {box.title for box in before.boxes if box.kind == "pod"} == {"team/ingest", "team/clean"}
