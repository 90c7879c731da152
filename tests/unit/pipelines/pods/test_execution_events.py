"""The record of a task in a Pod: what it read and made leads from task to task."""

from msgspec import UNSET
from msgspec.structs import replace

from clew.cli.lineage.tree import lines
from clew.documents.ids import Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.pipelines.pods.execution_events import PodRecord, build_events, process_of
from clew.prov.events import Content, Ended, Gap, Generated, Started, Used
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.targets import resolve_target

FILE = StoredFile("s3://lake/data", 3, "blake3:aa", "e1")


def test_the_events_of_an_attempt() -> None:
    record = PodRecord(
        execution=Uid("e" * 32),
        name="train",
        agent="me",
        namespace="team",
        began=10,
        ended=20,
        pod="clew-train",
        node="node1",
        image="python:3",
        image_digest="sha256:aa",
        command=("python3", "main"),
        status=0,
        inputs=(FILE, FILE),
        outputs=(FILE,),
        retries=[{"pod": "clew-train-0", "node": "node2", "problem": "it was evicted"}],
    )
    events = build_events(record)
    assert len({event.n for event in events}) == len(events), "each has its own number"
    execution, process = (event for event in events if isinstance(event, Started))
    assert (execution.kind, execution.node, execution.image) == ("execution", "node1", "python:3")
    assert execution.facets["task_pod"] == {
        "pod": "clew-train",
        "node": "node1",
        "image_digest": "sha256:aa",
        "namespace": "team",
        "image": "python:3",
        "retries": record.retries,
    }
    assert (process.activity, process.number) == (process_of(record.execution), 1)
    (used,) = (event for event in events if isinstance(event, Used))
    (generated,) = (event for event in events if isinstance(event, Generated))
    assert used.at < generated.at
    assert used.version != generated.version
    contents = {event.version: event for event in events if isinstance(event, Content)}
    assert contents.keys() == {used.version, generated.version}
    assert not any(content.stored for content in contents.values())
    assert [event.what for event in events if isinstance(event, Gap)] == ["container"]
    assert {event.activity for event in events if isinstance(event, Ended)} == {
        execution.activity,
        process.activity,
    }


def test_the_lineage_says_where_a_task_ran_and_why(graph: Graph) -> None:
    for number, placement in enumerate((None, "on edge, 9.8 ms from HOME: the only feasible node")):
        record = PodRecord(
            execution=Uid(f"{number}" * 32),
            name=("train", "predict")[number],
            agent="me",
            namespace="team",
            began=10 + 20 * number,
            ended=20 + 20 * number,
            pod="clew-task",
            node=("cloud", "edge")[number],
            placement=placement,
            command=("python3", "main"),
            status=0,
            inputs=(FILE,) if number else (),
            outputs=(replace(FILE, url=f"s3://lake/{number}"),) if number else (FILE,),
        )
        graph.fold(build_events(record))
    target = resolve_target(
        graph, "s3://lake/1", machine="m", locate=lambda path: path, digest_of=lambda _: None
    )
    traced = trace_lineage(graph, target, direction="up")
    nodes = {node.name: node for node in traced.nodes if node.kind == "process"}
    assert (nodes["train"].node, nodes["train"].placement) == ("cloud", UNSET)
    assert nodes["predict"].placement == "on edge, 9.8 ms from HOME: the only feasible node"
    text = "\n".join(lines(traced.as_json()))
    assert "on cloud" in text
    assert "on edge, 9.8 ms from HOME: the only feasible node" in text
