"""Finding things by a part of what they are called."""

from typing import Any

import pytest
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, machine_learning
from tests.unit.prov.execution_builder import ExecutionBuilder, digest

from clew.prov.events import Ended, Started
from clew.prov.graph import Graph
from clew.prov.queries.executions import find_execution
from clew.prov.queries.notes import add_note
from clew.prov.queries.search.search import search
from clew.prov.queries.targets import Target


@pytest.fixture
def ask(graph: Graph) -> Any:
    a = ExecutionBuilder("a")
    p = a.process("python", 'say "Ünder_score"', "100%")
    a.read(p, "/w/Data_1.csv", "D1")
    a.write(p, "/w/out", "OUT")
    graph.begin(a.uid, name="first-try")
    graph.fold(a.end().events)
    b = ExecutionBuilder("b", at=10_000)
    q = b.process("sort")
    b.read(q, "/w/Data_1.csv", "D1")
    graph.fold(b.end().events)
    run = "f" * 32
    graph.fold(
        [
            Started(
                execution=run, n=1, at=5, activity=run, kind="run", facets={"pipeline": "Nightly"}
            ),
            Ended(execution=run, n=2, at=6, activity=run),
        ]
    )

    def hits(text: str, limit: int = 10) -> list[tuple[str, str, str]]:
        found = search(graph, text, limit=limit)
        return [(one.kind, one.id, one.by) for one in found]

    return hits


def test_by_path_the_latest_version_is_named(ask: Any) -> None:
    assert ask("data_1.C") == [("file", "e2:/w/Data_1.csv@1", "path")]


def test_by_name_and_by_command(ask: Any) -> None:
    assert ("execution", "e1", "name") in ask("FIRST-t")
    assert ("process", "e2.p1", "command") in ask("sort")


def test_by_notes_and_tags(graph: Graph, ask: Any) -> None:
    target = Target("execution", "e2", (find_execution(graph, "e2").key,))
    for name, value in (("note", "Good_1"), ("tag", "keep"), ("tag", "drop"), ("untag", "drop")):
        add_note(graph, target, name, value, agent="ann")
    assert ask("good_") == [("execution", "e2", "note")]
    assert ask("KEEP") == [("execution", "e2", "tag")]
    assert ask("drop") == []
    for value in ("keep", "drop"):
        add_note(graph, target, "tag", value, agent="ann", at=1)
    assert ask("KEEP") == [("execution", "e2", "tag")], "a tag is found once"
    assert ask("drop") == []


def test_what_databases_and_json_write_otherwise_is_found_as_it_is(ask: Any) -> None:
    assert ("process", "e1.p1", "command") in ask('say "')
    assert ("process", "e1.p1", "command") in ask("Ünder_s")
    assert ("process", "e1.p1", "command") in ask("100%")
    assert ask("1%0") == []
    assert ask("Data_1_csv") == []  # _ stands for itself
    assert ask("\\") == []


def test_runs_by_their_pipeline(ask: Any) -> None:
    assert ask("night") == [("run", "r1", "name")]


def test_by_digest(ask: Any) -> None:
    held = digest("D1")
    assert set(ask(held)) == {(("file", f"e{n}:/w/Data_1.csv@1", "digest")) for n in (1, 2)}
    assert ask(held.removeprefix("blake3:")[:8]) == ask(held)


def test_at_most_so_many(ask: Any) -> None:
    assert len(ask(digest("D1"), limit=1)) == 1


@pytest.fixture
def files(graph: Graph, ask: Any) -> Any:
    c = ExecutionBuilder("c", at=20_000)
    p = c.process("python3", "fit.py", image="registry/fit:2")
    for path in (
        "/w/train.csv",
        "/w/old/train.csv.bak",
        "/w/retrain.csv",
        "/w/train/part",
        "/usr/lib/python3/site-packages/sklearn/train.csv",
        "s3://bucket/train.parquet",
    ):
        c.read(p, path, path)
    c.write(p, "/w/model.PKL", "M")
    graph.fold(c.end().events)
    return ask


def test_the_best_matches_come_first(files: Any) -> None:
    found = [id_.removeprefix("e3:") for kind, id_, _ in files("train.csv") if kind == "file"]
    assert found == [
        "/w/train.csv@1",
        "/w/old/train.csv.bak@1",
        "/w/retrain.csv@1",
        "/usr/lib/python3/site-packages/sklearn/train.csv@1",
    ]


def test_all_words_must_occur_in_any_order(files: Any) -> None:
    assert [id_ for _, id_, _ in files("csv old")] == ["e3:/w/old/train.csv.bak@1"]
    assert ("process", "e3.p1", "command") in files("fit PYTHON3")
    assert files("train nothing") == []


def test_kinds_of_files(files: Any) -> None:
    assert files("model.pkl") == [("model", "e3:/w/model.PKL@1", "path")]
    assert ("object", "e3:s3://bucket/train.parquet@1", "path") in files("parquet")


def test_a_name_may_be_abbreviated(files: Any) -> None:
    assert files("rtrncsv") == [("file", "e3:/w/retrain.csv@1", "path")]
    assert files("%_") == []


def test_no_name_makes_a_search_last_forever(graph: Graph) -> None:
    a = ExecutionBuilder("a")
    a.write(a.process("python"), f"/w/{'a-' * 30}b/{'a' * 200}", "A")
    graph.fold(a.end().events)
    assert search(graph, f"{'a' * 30}b", limit=10) == []


def test_by_id_and_by_image(files: Any) -> None:
    assert files("e3")[0] == ("execution", "e3", "id")
    assert files("e3.p1")[0] == ("process", "e3.p1", "id")
    assert files("r1")[0] == ("run", "r1", "name")
    assert files("e99") == []
    assert files("registry/fit") == [("process", "e3.p1", "image")]


def test_what_a_cluster_observed_by_its_name(graph: Graph) -> None:
    cluster = ClusterBuilder()
    machine_learning(cluster)
    cluster.pod("team", "train", incarnation=1).end()
    cluster.fold(graph)
    for text in ("team/train", "pod/team/train", "TRAIN"):
        found = [hit for hit in search(graph, text, limit=10) if hit.kind == "pod"]
        assert [(hit.label, hit.by) for hit in found] == [("team/train", "name")] * 2, text
        assert len({hit.id for hit in found}) == 2
    assert search(graph, "team/data", limit=10)[0].kind == "claim"


@pytest.mark.parametrize("restricted", [False, True])
def test_hidden_hits_take_no_place_of_others(graph: Graph, restricted: bool) -> None:
    """The Pods of `b` are older than all those of `a`, and its objects come later."""
    cluster = ClusterBuilder()
    cluster.pod("b", "report").read("s3://lake/x", "x").write("s3://lake/y-report", "r").end()
    for n in range(6):
        cluster.pod("a", f"report-{n}").read("s3://lake/x", "x").write(f"s3://lake/{n}", "r").end()
    cluster.fold(graph)
    graph.restrict((lambda namespace: namespace == "b") if restricted else None)
    for text in ("report", "lake", digest("r"), "lake x", "run"):
        found = search(graph, text, limit=2)
        assert found, text
        if restricted:
            assert {hit.execution for hit in found} == {"e1"}, text
