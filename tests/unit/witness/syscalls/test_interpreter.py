"""The interpreter on real traces of clew-trace: cut anywhere, shuffled, with duplicates.

Each workload is run once; its trace is then interpreted many times from parts of the file.
"""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.db import connect
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    from_lines,
    to_lines,
)
from clew.prov.graph import Graph
from clew.prov.locators import file_locator
from clew.redaction import Redactor
from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.event_builder import EventBuilder
from clew.witness.syscalls.interpreter import interpret
from clew.witness.syscalls.trace_format import AnyRecord, Exec, Exit, Spawn, Trace, sort_records
from clew.witness.syscalls.trace_state import TraceContext
from clew.witness.tracer_binary import LIBRARY, TRACER

EXECUTION = "0" * 32
PYTHON = """
import json, os, subprocess
with open("config.json") as file: config = json.load(file)
with open("model.tmp", "w") as file: json.dump(config, file)
os.rename("model.tmp", "model")
with open("model", "a") as file: file.write("more")
os.truncate("model", 3)
os.symlink("model", "latest")
with open("latest") as file: file.read()
os.link("model", "second")
os.makedirs("deep/er"); os.rename("model", "deep/er/model"); os.rename("deep", "shallow")
os.listdir("shallow")
try: open("missing")
except OSError: pass
pid = os.fork()
if pid == 0:
    with open("childs", "w") as file: file.write("x")
    os._exit(3)
os.waitpid(pid, 0)
subprocess.run("cat childs | tr x y > piped; kill -9 $$", shell=True)
os.unlink("childs")
"""
SHELL = """
sort data > mid; cat mid mid | tr a-z A-Z > out; rm mid; mv out up
for c in B A B A; do read was < up; echo $c > up; done
(cat up & wait) >> log
"""
WORKLOADS = {
    "shell": ["sh", "-c", SHELL],
    "python": [sys.executable, "-S", "-c", PYTHON],
    "becomes": ["sh", "-c", "exec sh -c 'exec cat data'"],
}


@dataclass
class Recorded:
    """The trace of one workload, and what it takes to interpret it."""

    trace: bytes
    spool: Path
    store: Store

    def build_events(self, trace: bytes | list[AnyRecord]) -> list[AnyEvent]:
        records = self.read(trace) if isinstance(trace, bytes) else trace
        context = TraceContext(
            execution=EXECUTION,
            locate=partial(file_locator, "machine"),
            boot="12345678",
            variables={},
            redactor=Redactor({}),
            ignore=(),
            streams={},
        )
        contents = ContentCapture(self.store, saved=self.saved(), store_content=False, exclude=())
        in_order = sort_records(records)
        contents.follow(in_order)
        state = interpret(context, in_order, contents)
        return list(EventBuilder(context, state, contents, {}).events())

    def saved(self) -> Path:
        """A copy of what the tracer saved: capturing content removes it."""
        copy = self.spool / "saved"
        shutil.rmtree(copy, ignore_errors=True)
        return shutil.copytree(self.spool, copy, ignore=lambda *_: {"saved", "trace"})

    def read(self, trace: bytes) -> list[AnyRecord]:
        part = self.spool / "part-of-the-trace"
        part.write_bytes(trace)
        reader = Trace(part)
        try:
            return reader.read()
        finally:
            reader.close()


@pytest.fixture(scope="module", params=WORKLOADS)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    directory = tmp_path_factory.mktemp("work")
    spool = tmp_path_factory.mktemp("spool")
    (directory / "data").write_text("b\na\n")
    (directory / "config.json").write_text('{"a": 1}')
    tracer = [str(TRACER), "--out", str(spool / "trace"), "--library", str(LIBRARY)]
    words = [*tracer, "--spool", str(spool), "--", *WORKLOADS[request.param]]
    subprocess.run(words, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    with Store(tmp_path_factory.mktemp("store")) as store:
        yield Recorded((spool / "trace").read_bytes(), spool, store)


def facts(events: list[AnyEvent]) -> set[tuple[object, ...]]:
    """The content of the events, without their numbers."""
    found: set[tuple[object, ...]] = set()
    for event in events:
        if isinstance(event, Started):
            found.add(("started", event.activity, event.parent, event.pid))
        elif isinstance(event, Ended):
            found.add(("ended", event.activity, event.status, event.signal))
        elif isinstance(event, Used):
            found.add(("used", event.activity, event.version.locator))
        elif isinstance(event, Invalidated):
            found.add(("invalidated", event.activity, event.version.locator, event.how))
        elif isinstance(event, Looked):
            looks = ((event.kind, event.locator, event.answer), *event.also)
            found |= {("looked", event.activity, *look) for look in looks if look[0] != "link"}
    return found


def check(events: list[AnyEvent]) -> None:
    """Invariants of every trace, complete or cut."""
    started = {event.activity for event in events if isinstance(event, Started)} | {EXECUTION}
    numbers = [event.n for event in events]
    assert len(numbers) == len(set(numbers))
    versions: dict[tuple[str, int], str] = {}
    for event in events:
        if isinstance(event, Ended | Used | Generated | Invalidated | Looked | Informed | Gap):
            assert event.activity in started
        if isinstance(event, Informed):
            assert event.by in started
        if isinstance(event, Used | Generated | Invalidated | Content):
            version = event.version
            assert version.maker in started
            assert version.ordinal >= 1
            # a path has only one N-th version
            known = versions.setdefault((version.locator, version.ordinal), version.maker)
            assert known == version.maker
    for locator, ordinal in versions:
        assert ordinal == 1 or (locator, ordinal - 1) in versions or "://" not in locator


def test_a_complete_trace(recorded: Recorded) -> None:
    records = recorded.read(recorded.trace)
    spawned = [record for record in records if isinstance(record, Spawn)]
    assert len(spawned) == sum(isinstance(record, Exit) for record in records)
    assert any(isinstance(record, Exec) for record in records)
    events = recorded.build_events(recorded.trace)
    check(events)
    assert sum(isinstance(event, Started) for event in events) >= len(spawned)
    assert any(isinstance(event, Used) for event in events)


@given(part=st.floats(0, 1))
def test_a_trace_cut_at_any_byte_gives_a_part_of_the_facts(recorded: Recorded, part: float) -> None:
    cut = recorded.trace[: int(len(recorded.trace) * part)]
    events = recorded.build_events(cut)
    check(events)
    assert facts(events) <= facts(recorded.build_events(recorded.trace))


def test_a_trace_cut_after_any_record_gives_a_part_of_the_facts(recorded: Recorded) -> None:
    """Each record may be the last one that reached the disk."""
    at, cuts = 0, []
    while at < len(recorded.trace):
        at += 4 + int.from_bytes(recorded.trace[at : at + 4], "little")
        cuts.append(at)
    complete = facts(recorded.build_events(recorded.trace))
    for cut in cuts[:: max(1, len(cuts) // 60)]:
        events = recorded.build_events(recorded.trace[:cut])
        check(events)
        assert facts(events) <= complete


@given(seed=st.integers(0, 2**32), doubled=st.integers(0, 3))
def test_shuffled_and_duplicate_records_give_the_same_events(
    recorded: Recorded, seed: int, doubled: int
) -> None:
    records = recorded.read(recorded.trace)
    chance = random.Random(seed)
    again = records + [record for record in records for _ in range(chance.randint(0, doubled))]
    chance.shuffle(again)
    assert recorded.build_events(again) == recorded.build_events(recorded.trace)


@given(part=st.floats(0, 1), garbage=st.binary(min_size=1, max_size=64))
def test_garbage_after_a_cut_ends_the_trace(
    recorded: Recorded, part: float, garbage: bytes
) -> None:
    """A power cut may leave anything in the last block of a file."""
    at, cut = 0, int(len(recorded.trace) * part)
    while at < cut:
        at += 4 + int.from_bytes(recorded.trace[at : at + 4], "little")
    sound = recorded.read(recorded.trace[:at])
    read = recorded.read(
        recorded.trace[:at] + len(garbage).to_bytes(4, "little") + b"\xc1" + garbage
    )
    assert read == sound


# -- folding the events


def rows(events: list[AnyEvent], path: Path) -> dict[str, set[tuple[object, ...]]]:
    """All rows of the graph after folding, by table."""
    path.unlink(missing_ok=True)
    with connect(path) as connection:
        Graph(connection, "f" * 32).fold(events)
        names = connection.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        found = {}
        for (name,) in names:
            if name not in ("project", "execution") and not str(name).startswith("sqlite_"):
                found[str(name)] = set(connection.rows(f'SELECT * FROM "{name}"'))
        return found


@given(seed=st.integers(0, 2**32))
def test_shuffled_and_duplicate_events_fold_to_the_same_graph(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    database = tmp_path_factory.getbasetemp() / "shuffled.db"
    events = recorded.build_events(recorded.trace)
    chance = random.Random(seed)
    again = events + chance.sample(events, len(events) // 2)
    chance.shuffle(again)
    assert rows(again, database) == rows(events, database)


@given(part=st.floats(0, 1))
def test_events_cut_at_any_byte_fold_to_a_part_of_the_graph(
    recorded: Recorded, tmp_path_factory: pytest.TempPathFactory, part: float
) -> None:
    database = tmp_path_factory.getbasetemp() / "cut.db"
    events = recorded.build_events(recorded.trace)
    lines = b"".join(to_lines(events))
    cut = lines[: int(len(lines) * part)]
    some = list(from_lines(cut.splitlines(keepends=True)))
    assert some == events[: len(some)]
    complete, partial = rows(events, database), rows(some, database)
    for table, found in partial.items():
        # later events may complete these two
        if table not in ("version", "content"):
            assert found <= complete[table], table
