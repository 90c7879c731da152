"""The processes of a task, from the trace that clew-step lets the tracer write: with real processes
in a container's file system, without a Pod."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from clew.documents.ids import Uid
from clew.pipelines.pods.artifact_store import StoredFile
from clew.pipelines.pods.execution_events import PodRecord, build_events
from clew.pipelines.pods.task_documents import TaskTrace, TraceHeader, decode_trace, encode_trace
from clew.pipelines.pods.task_tracer import mask_variables
from clew.pipelines.pods.witnessed_processes import NotWitnessed, TracedTask, convert_trace
from clew.prov.events import AnyEvent, Content, Gap, Generated, Started, Used
from clew.witness.tracer_binary import DIRECTORY

PLACE = "s3://lake/runs/1/train/1"
DIGITS = "1" * 64
UID = Uid("e" * 32)
TASK = TracedTask(
    place=PLACE,
    inputs=("s3://lake/data",),
    mounts=("/mnt/claim",),
    secrets=("KEY",),
    redact=(),
)
SCRIPT = f"""
read line </s3/lake/data
grep -q root /etc/passwd
echo $line >/tmp/scratch
cat /tmp/scratch >/s3/{PLACE[5:]}/model
ls /mnt/claim >/dev/null
"""


class Pod:
    """What the two containers of a Pod share, and the file system of the second one."""

    def __init__(self, folder: Path) -> None:
        self.control, self.data = folder / "clew", folder / "s3"
        for made in (self.control / "bin", self.control / "trace", self.data / "lake"):
            made.mkdir(parents=True)
        for name in ("clew-step", "clew-trace", "libclew-inject.so"):
            if (DIRECTORY / name).exists():
                shutil.copy(DIRECTORY / name, self.control / "bin")
        (self.control / "ready").touch()

    def run(self, *command: str, **variables: str) -> int:
        bubblewrap = ["bwrap", "--unshare-pid", "--proc", "/proc", "--dev", "/dev"]
        bubblewrap += ["--tmpfs", "/tmp", "--tmpfs", "/mnt", "--dir", "/mnt/claim"]
        for path in ("/usr", "/etc", "/lib", "/lib64", "/bin"):
            bubblewrap += ["--ro-bind-try", path, path]
        bubblewrap += ["--bind", self.control, "/clew", "--bind", self.data, "/s3"]
        for name, value in variables.items():
            bubblewrap += ["--setenv", name, value]
        words = [*bubblewrap, "--", "/clew/bin/clew-step", "--", *command]
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode

    def states(self, *urls: str) -> dict[str, Any]:
        found = {url: (self.data / url.removeprefix("s3://")).stat() for url in urls}
        return {
            url: (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_mode)
            for url, s in found.items()
        }

    def records(self) -> bytes:
        return (self.control / "trace" / "records").read_bytes()


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    made = Pod(tmp_path)
    (made.data / "lake" / "data").write_text("rows\n")
    (made.data / PLACE.removeprefix("s3://")).mkdir(parents=True)
    return made


def record(*outputs: StoredFile) -> PodRecord:
    return PodRecord(
        execution=UID,
        name="train",
        agent="me",
        namespace="team",
        began=10,
        ended=2**62,
        node="node1",
        image="busybox:1",
        image_digest=f"sha256:{DIGITS}",
        status=0,
        inputs=(DATA,),
        outputs=outputs,
    )


DATA = StoredFile("s3://lake/data", 5, f"blake3:{'a' * 64}", "e1")
MODEL = StoredFile(f"{PLACE}/model", 5, f"blake3:{'b' * 64}", "e2")


def of(events: list[AnyEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_what_the_processes_did(pod: Pod) -> None:
    assert pod.run("sh", "-ec", SCRIPT, KEY="a long secret") == 0
    records = mask_variables(pod.records(), TASK.secrets)
    assert b"a long secret" in pod.records()
    assert b"a long secret" not in records
    header = TraceHeader(inputs=(DATA,), states=pod.states(DATA.url, MODEL.url))
    trace = decode_trace(encode_trace(TaskTrace(header, records)))
    known = record(MODEL)
    events = build_events(known, (), convert_trace(TASK, trace, known, ()))

    assert len({event.n for event in events}) == len(events), "each has its own number"
    assert not of(events, Gap)
    processes = {event.activity: event for event in of(events, Started) if event.kind == "process"}
    shell = next(event for event in processes.values() if event.number == 1)
    assert (shell.name, shell.node, shell.parent) == ("train", "node1", UID)
    assert shell.environment["KEY"] == "***"
    assert shell.facets["task_pod"]["node"] == "node1"
    exe = {event.exe.rpartition("/")[2]: uid for uid, event in processes.items() if event.exe}
    assert {"grep", "cat", "ls"} <= exe.keys()
    used = {(event.activity, event.version.locator) for event in of(events, Used)}
    made = {(event.activity, event.version.locator) for event in of(events, Generated)}
    assert (shell.activity, "s3://lake/data") in used
    assert (exe["grep"], f"file://{DIGITS}/etc/passwd") in used
    assert (exe["cat"], f"file://{UID}/tmp/scratch") in used
    assert (shell.activity, f"file://{UID}/tmp/scratch") in made
    assert (exe["cat"], MODEL.url) in made
    contents = {event.version.locator: event for event in of(events, Content)}
    assert contents[DATA.url].digest == DATA.digest
    assert contents[MODEL.url].version.maker == exe["cat"]
    assert contents[MODEL.url].source == "etag=e2"
    assert not any("/clew/bin" in locator for _, locator in used | made)


def test_a_task_that_stores_nothing_makes_no_artifact(pod: Pod) -> None:
    """It failed after it wrote its output, or changed its copy of an input."""
    script = f"{SCRIPT} echo more >>/s3/lake/data; exit 3"
    assert pod.run("sh", "-ec", script) == 3
    known = replace(record(), status=3, inputs=(DATA,))
    trace = TaskTrace(TraceHeader(inputs=(DATA,)), pod.records())
    events = build_events(known, (), convert_trace(TASK, trace, known, ()))
    made = {event.version.locator for event in of(events, Generated)}
    assert f"file://{UID}/s3/{PLACE[5:]}/model" in made
    assert not any(locator.startswith("s3:") for locator in made)


def test_an_output_that_was_not_seen_to_be_written(pod: Pod) -> None:
    """It is recorded as declared: as one of the first process."""
    assert pod.run("true") == 0
    known = record(MODEL)
    events = build_events(
        known, (), convert_trace(TASK, TaskTrace(TraceHeader(), pod.records()), known, ())
    )
    (process,) = (event for event in of(events, Started) if event.kind == "process")
    (made,) = (event for event in of(events, Generated) if event.version.locator[:2] == "s3")
    assert (made.activity, made.version.locator) == (process.activity, MODEL.url)
    declared = [event for event in of(events, Used) if event.how == "declared"]
    assert [event.version.locator for event in declared] == [DATA.url]


def test_a_trace_that_is_cut(pod: Pod) -> None:
    assert pod.run("sh", "-ec", SCRIPT) == 0
    trace = TaskTrace(TraceHeader(), pod.records()[:-100])
    known = record()
    events = build_events(known, (), convert_trace(TASK, trace, known, ()))
    assert [gap.why for gap in of(events, Gap)] == ["the trace ends before the command"]


@pytest.mark.parametrize(
    "records", [b"", b"\5\0\0\0hello", os.urandom(1000), b"\0\0\0\0", b"\1\0\0\0\x90" * 3]
)
def test_a_trace_that_is_garbage(records: bytes) -> None:
    with pytest.raises(NotWitnessed):
        convert_trace(TASK, TaskTrace(TraceHeader(), records), record(), ())
