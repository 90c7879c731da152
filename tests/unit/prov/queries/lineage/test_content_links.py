"""Links from found files to earlier versions with the same bytes, and how they are ranked."""

from typing import Any

import pytest
from tests.unit.prov.conftest import Ask
from tests.unit.prov.execution_builder import ExecutionBuilder, locator
from tests.unit.prov.queries.lineage.test_lineage import drawn, names, node

from clew.prov.graph import Graph
from clew.prov.queries.lineage import content_links
from clew.prov.queries.lineage.content_links import Candidate, rank_candidates
from clew.prov.queries.lineage.lineage import trace_lineage

LONG = "x" * content_links.TINY


def make(graph: Graph, uid: str, path: str, text: str = LONG, *, at: int, **facts: Any) -> None:
    builder = ExecutionBuilder(uid, at=at, **facts)
    builder.write(builder.process("make"), path, text)
    graph.fold(builder.end().events)


def use(graph: Graph, uid: str, path: str, text: str = LONG, *, at: int) -> None:
    builder = ExecutionBuilder(uid, at=at)
    process = builder.process("use")
    builder.read(process, path, text)
    builder.write(process, f"/w/out-{uid}", f"made from {path}")
    graph.fold(builder.end().events)


@pytest.fixture
def moved(graph: Graph) -> None:
    """e1 made got.csv; it was moved to data/raw.csv, which e2 read."""
    make(graph, "a", "/w/got.csv", at=1_000)
    use(graph, "b", "/w/data/raw.csv", at=2_000)


@pytest.mark.usefixtures("moved")
class TestMovedFile:
    def test_the_lineage_continues_at_the_old_path(self, graph: Graph, target: Ask) -> None:
        answer = trace_lineage(graph, target("e2:out-b"), depth=2)
        link = "e1:/w/got.csv@1 same_content e2:/w/data/raw.csv@1"
        assert {link, "e1.p1 generated e1:/w/got.csv@1"} < drawn(answer)
        [edge] = [edge for edge in answer.edges if edge.kind == "same_content"]
        assert edge.strength == "strong"
        [candidate] = node(answer, "e2:/w/data/raw.csv@1").same_content
        assert (candidate.version, candidate.made) == ("e1:/w/got.csv@1", True)
        assert node(answer, "e1:/w/got.csv@1").same_content == ()

    def test_down_follows_the_same_link(self, graph: Graph, target: Ask) -> None:
        answer = trace_lineage(graph, target("e1:got.csv"), direction="down", depth=1)
        assert drawn(answer) == {
            "e1:/w/got.csv@1 same_content e2:/w/data/raw.csv@1",
            "e2:/w/data/raw.csv@1 used e2.p1",
            "e2.p1 generated e2:/w/out-b@1",
        }

    def test_a_file_that_no_execution_met(self, graph: Graph, target: Ask) -> None:
        answer = trace_lineage(graph, target("copy", copy=LONG))
        assert "e1:/w/got.csv@1 same_content copy" in drawn(answer)
        assert not node(answer, "copy").changed_outside
        candidates = [one.version for one in node(answer, "copy").same_content]
        assert candidates == ["e1:/w/got.csv@1", "e2:/w/data/raw.csv@1"]

    def test_other_projects_in_the_database_give_no_links(self, graph: Graph) -> None:
        other = Graph(graph.connection, "q" * 32)
        use(other, "c", "/w/theirs", at=3_000)
        found = {n.id for n in trace_lineage(other, _resolve(other, "e1:out-c")).nodes}
        assert found == {"e1:/w/out-c@1", "e1.p1", "e1:/w/theirs@1"}


def _resolve(graph: Graph, text: str) -> Any:
    from clew.prov.queries.targets import resolve_target

    return resolve_target(
        graph, text, machine="m1", locate=lambda p: b"/w/" + p, digest_of=lambda _: None
    )


def test_nothing_is_linked_to_a_later_version_or_within_one_execution(
    graph: Graph, target: Ask
) -> None:
    copy = ExecutionBuilder("a", at=1_000)
    shell = copy.process("cat", "from")
    copy.write(shell, "/w/to", LONG)  # the shell opened it before cat read
    copy.read(shell, "/w/from", LONG)
    graph.fold(copy.end().events)
    make(graph, "b", "/w/later", at=5_000)
    answer = trace_lineage(graph, target("e1:to"))
    assert names(answer) == {"e1:/w/to@1", "e1.p1", "e1:/w/from@1"}


def test_a_pulled_execution_is_a_candidate_behind_local_ones(graph: Graph, target: Ask) -> None:
    pulled = ExecutionBuilder("a", at=1_500)
    pulled.write(pulled.process("make"), "/w/raw", LONG)
    graph.import_events(pulled.end().events)
    use(graph, "b", "/w/copy", at=2_000)
    assert "e1:/w/raw@1 same_content e2:/w/copy@1" in drawn(
        trace_lineage(graph, target("e2:out-b"))
    )
    make(graph, "c", "/w/own", at=1_000)
    answer = trace_lineage(graph, target("e2:out-b"))
    assert "e3:/w/own@1 same_content e2:/w/copy@1" in drawn(answer)
    versions = [one.version for one in node(answer, "e2:/w/copy@1").same_content]
    assert versions == ["e3:/w/own@1", "e1:/w/raw@1"]


@pytest.mark.parametrize("text", ["", "tiny"])
def test_empty_files_are_not_linked_and_tiny_ones_weakly(
    graph: Graph, target: Ask, text: str
) -> None:
    make(graph, "a", "/w/got", text, at=1_000)
    use(graph, "b", "/w/raw", text, at=2_000)
    answer = trace_lineage(graph, target("e2:out-b"))
    strengths = [one.strength for one in node(answer, "e2:/w/raw@1").same_content]
    assert strengths == (["weak"] if text else [])


def test_common_content_is_linked_weakly(graph: Graph, target: Ask) -> None:
    for number in range(content_links.COMMON + 1):
        make(graph, "abcdef"[number], f"/w/{number}/made", at=1_000 * (number + 1))
    use(graph, "9", "/w/raw", at=90_000)
    answer = trace_lineage(graph, target("e7:out-9"))
    candidates = node(answer, "e7:/w/raw@1").same_content
    assert [one.path for one in candidates] == [f"/w/{n}/made" for n in (5, 4, 3, 2, 1, 0)]
    assert {one.strength for one in candidates} == {"weak"}


def test_content_with_many_versions(
    graph: Graph, target: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_links, "_FEW", 2)
    make(graph, "a", "/w/got", at=1_000)
    for number, uid in enumerate("bcde"):
        use(graph, uid, "/w/raw", at=2_000 + 1_000 * number)
    use(graph, "f", "/w/copy", at=9_000)
    up = trace_lineage(graph, target("e6:out-f"))
    assert "e1:/w/got@1 same_content e6:/w/copy@1" in drawn(up)
    down = trace_lineage(graph, target("e1:got"), direction="down")
    assert {f"e{n}:/w/out-{uid}@1" for n, uid in zip((2, 5, 6), "bef", strict=True)} < names(down)


def candidate(key: int, path: str, **facts: Any) -> Candidate:
    fields: dict[str, Any] = {
        "digest": b"", "key": key, "execution": key, "location": key, "locator": locator(path),
        "maker": -1, "at": 0, "size": 1_000, "mode": 0o100644, "has_source": False,
        "made_elsewhere": 0, "repetition": False,
    }  # fmt: skip
    return Candidate(**fields | facts)


def ranked(*candidates: Candidate) -> list[int]:
    link = rank_candidates(candidates, at=100, locator=locator("/w/raw.csv"), execution=0)
    return [one.key for one in link.candidates] if link else []


def test_the_likeliest_candidate_comes_first() -> None:
    found = {"maker": 1, "execution": 1}
    ranking = [
        candidate(9, "/a/raw.csv", at=5),  # made here, same name
        candidate(2, "/a/new", at=90),  # made here, latest
        candidate(3, "/a/old", at=10),
        candidate(4, "/a/again", at=95, repetition=True),
        candidate(5, "/b/raw.csv", at=99, **found),  # found, same name
        candidate(6, "/b/fetched", at=99, has_source=True, **found),
        candidate(7, "/b/first", at=1, **found),
        candidate(8, "/c/raw.csv", at=99, made_elsewhere=1),  # claimed by another party
    ]
    assert ranked(*reversed(ranking)) == [9, 2, 3, 4, 5, 6, 7, 8]


def test_no_candidates() -> None:
    assert ranked() == []
    here = candidate(1, "/w/raw.csv")
    link = candidate(2, "/w/link", mode=0o120777)
    later = candidate(3, "/w/later", at=100)
    alongside = candidate(4, "/w/alongside", execution=0)
    assert ranked(here, link, later, alongside) == []


def test_one_candidate_for_each_place() -> None:
    first, again = candidate(1, "/a", at=1, location=7), candidate(2, "/a", at=2, location=7)
    assert ranked(first, again) == [2]


def test_kept_output_is_made_and_input_is_not() -> None:
    assert candidate(1, "stream://u/stdout", maker=1).made
    assert not candidate(1, "stream://u/stdin", maker=1).made
