"""The record of a task in a Pod: what it read and made leads from task to task."""

from clew.documents.ids import Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.pipelines.pods.pod_events import PodRecord, build_events, process_of
from clew.prov.events import Content, Ended, Gap, Generated, Started, Used

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
