"""The audit agent reads each line of the log, whatever happens to the log or to the agent."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
from tests.unit.witness.kubernetes_audit.audit_log import audit, pod

from clew.agents.audit import audit_log_files, ingestion
from clew.agents.audit.audit_log_files import LogFile
from clew.agents.audit.checkpoint import Checkpoint, load_checkpoint
from clew.agents.audit.ingestion import AuditIngestion, AuditLog
from clew.agents.spool import Spool
from clew.errors import Full
from clew.prov.events import AnyEvent, Gap, Started, to_lines


def touch(number: int) -> bytes:
    """A line of the log: a user opened a shell in the Pod `pNUMBER`."""
    event = audit("get", "pods/exec", name=f"p{number}", at=float(number))
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


class Agent:
    """An audit agent that is started again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "audit.log"

    def read(self) -> None:
        """Start, read all that is there, and end."""
        spool = Spool(self.folder / "state" / "spool")
        try:
            ingestion = AuditIngestion(self.folder / "state", spool, source="log")
            AuditLog(self.log, ingestion, once=True).run(threading.Event())
        finally:
            spool.close()

    def events(self) -> list[AnyEvent]:
        """What is in the spool, each once."""
        spool = Spool(self.folder / "state" / "spool")
        found = [event for batch in spool.list_batches() for event in spool.read(batch)]
        spool.close()
        return list({(one.execution, one.n): one for one in found}.values())

    def seen(self) -> list[int]:
        """The numbers of the Pods that were touched."""
        return [
            int(one.facets["kubernetes"]["name"][1:])
            for one in self.events()
            if isinstance(one, Started) and one.kind == "request"
        ]

    def gaps(self) -> list[str]:
        return [one.why for one in self.events() if isinstance(one, Gap)]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def rotate(log: Path, at: str) -> Path:
    """As the API server does it."""
    return log.rename(log.with_name(f"audit-2026-11-19T{at}.000.log"))


def test_each_line_is_read_once_across_restarts(agent: Agent) -> None:
    with agent.log.open("ab", buffering=0) as log:
        for number in range(5):
            log.write(touch(number))
            agent.read()
        log.write(touch(5)[:40])
        agent.read()
        log.write(touch(5)[40:])
        agent.read()

    assert agent.seen() == list(range(6))
    assert agent.gaps() == []


@pytest.mark.parametrize("compressed", [False, True])
def test_rotations_between_two_runs(agent: Agent, compressed: bool) -> None:
    agent.log.write_bytes(touch(0) + touch(1))
    agent.read()
    with agent.log.open("ab") as log:
        log.write(touch(2))
    old = [rotate(agent.log, "10-00-00")]
    agent.log.write_bytes(touch(3))
    old.append(rotate(agent.log, "10-00-01"))
    agent.log.write_bytes(touch(4))
    for path in old if compressed else ():
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    agent.read()

    assert agent.seen() == list(range(5))
    assert agent.gaps() == []


def test_rotation_while_it_reads(agent: Agent) -> None:
    """The old file is read to its end, also what is written after the reader was at its end."""
    agent.log.write_bytes(touch(0))
    spool = Spool(agent.folder / "state" / "spool")
    taking = AuditIngestion(agent.folder / "state", spool, source="log")

    class Stopping(threading.Event):
        """Ends the agent when it waits for the third time; the log is rotated at the first."""

        waits = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.waits += 1
            if self.waits == 1:
                with agent.log.open("ab") as log:
                    log.write(touch(1))
                rotate(agent.log, "10-00-00")
                agent.log.write_bytes(touch(2))
            elif self.waits == 2:
                with agent.log.open("ab") as log:
                    log.write(touch(3))
            else:
                self.set()
            return self.is_set()

    AuditLog(agent.log, taking).run(Stopping())
    spool.close()

    assert agent.seen() == [0, 1, 2, 3]


@pytest.mark.parametrize("another", [False, True])
def test_rotation_just_before_a_file_is_opened(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, another: bool
) -> None:
    """`another`: the next file has its name already."""
    agent.log.write_bytes(touch(0))
    rotations = iter([agent.log])
    open_found = audit_log_files.open_file

    def open_late(file: LogFile) -> IO[bytes]:
        for log in rotations:
            rotate(log, "10-00-00")
            if another:
                log.write_bytes(touch(1))
        return open_found(file)

    monkeypatch.setattr(audit_log_files, "open_file", open_late)
    agent.read()
    if not another:
        agent.log.write_bytes(touch(1))
        agent.read()

    assert agent.seen() == [0, 1]
    assert agent.gaps() == []


def test_log_that_was_deleted_or_replaced_is_a_gap(agent: Agent) -> None:
    agent.log.write_bytes(touch(0) + touch(1))
    agent.read()
    agent.log.write_bytes(touch(7) + touch(8) + touch(9))  # the same inode, another first line
    agent.read()

    assert agent.seen() == [0, 1, 7, 8, 9]
    assert len(agent.gaps()) == 1
    assert "replaced" in agent.gaps()[0]


def test_log_that_was_truncated_is_a_gap(agent: Agent) -> None:
    agent.log.write_bytes(touch(0) + touch(1))
    agent.read()
    with agent.log.open("r+b") as log:
        log.truncate(0)
    with agent.log.open("ab") as log:
        log.write(touch(2))
    agent.read()

    assert agent.seen() == [0, 1, 2]
    assert len(agent.gaps()) == 1


def test_rotated_file_that_is_gone_is_a_gap(agent: Agent) -> None:
    agent.log.write_bytes(touch(0))
    agent.read()
    rotate(agent.log, "10-00-00").unlink()
    agent.log.write_bytes(touch(2))
    agent.read()

    assert agent.seen() == [0, 2]
    assert len(agent.gaps()) == 1


def test_what_is_no_event_is_a_gap_and_the_rest_is_read(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.agents.audit.log_reader.MAX_EVENT_BYTES", 1 << 21)
    bad = [
        b"not json\n",
        b'{"auditID":1}\n',
        b"[" * 100_000 + b"]" * 100_000 + b"\n",
        b'{"auditID":"' + b"x" * (3 << 20) + b'"}\n',
        b"\xff\xfe\n",
        b"\n",
        b"not json, either\n",
    ]
    agent.log.write_bytes(b"".join(touch(n) + line for n, line in enumerate(bad)) + touch(9))
    agent.read()

    assert agent.seen() == [0, 1, 2, 3, 4, 5, 6, 9]
    assert len(agent.gaps()) == 3
    assert any("(3 times)" in gap for gap in agent.gaps()), "one gap for each reason"


def test_line_that_a_crash_cut_does_not_hide_the_next(agent: Agent) -> None:
    agent.log.write_bytes(touch(0)[:200] + touch(1) + touch(2))
    agent.read()

    assert agent.seen() == [1, 2]
    assert len(agent.gaps()) == 1


def test_deep_object_does_no_harm(agent: Agent) -> None:
    deep = json.dumps(audit("create", "pods", pod())).replace('"app:1"', "[" * 5000 + "]" * 5000)
    agent.log.write_bytes(deep.encode() + b"\n" + touch(1))
    agent.read()

    assert agent.seen() == [1]


def test_kill_at_every_step_gives_the_same_events(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [audit("create", "pods", pod(), at=float(n)) for n in range(3)]
    lines = [json.dumps(one).encode() + b"\n" for one in answers] + [touch(n) for n in range(4)]
    other = Agent(tmp_path / "other")
    other.folder.mkdir()
    other.log.write_bytes(b"".join(lines))
    other.read()
    monkeypatch.setattr("clew.agents.audit.ingestion._BATCH_LINES", 2)
    agent.log.write_bytes(b"".join(lines))
    for step in _steps(monkeypatch):
        with step, pytest.raises(_Killed):
            agent.read()
    agent.read()

    assert sorted(to_lines(agent.events())) == sorted(to_lines(other.events()))


class _Killed(BaseException):
    """The process is killed."""


class _Step:
    """Kills the process when it calls a function the n-th time, before or after."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, count: int, before: bool) -> None:
        self._patch, self._name, self._count, self._before = patch, name, count, before

    def __enter__(self) -> None:
        from clew.agents import spool

        owner, name = {
            "append": (spool.Spool, "append"),
            "save": (ingestion, "save_checkpoint"),
        }[self._name]
        real = getattr(owner, name)
        self._restore = (owner, name, real)
        calls = 0

        def killed(*words: object, **more: object) -> None:
            nonlocal calls
            calls += 1
            if calls == self._count and self._before:
                raise _Killed
            real(*words, **more)
            if calls == self._count:
                raise _Killed

        setattr(owner, name, killed)

    def __exit__(self, *_: object) -> None:
        owner, name, real = self._restore
        setattr(owner, name, real)


def _steps(patch: pytest.MonkeyPatch) -> Iterator[_Step]:
    for name in ("append", "save"):
        for before in (True, False):
            yield _Step(patch, name, 1, before)


def test_damaged_checkpoint_repeats_the_log(agent: Agent) -> None:
    agent.log.write_bytes(touch(0))
    agent.read()
    (agent.folder / "state" / "checkpoint.json").write_bytes(b'{"position":')
    agent.read()

    assert agent.seen() == [0]
    assert load_checkpoint(agent.folder / "none.json") == Checkpoint()


def test_full_spool_stops_the_reading(agent: Agent) -> None:
    agent.log.write_bytes(b"".join(map(touch, range(3))))
    spool = Spool(agent.folder / "state" / "spool", limit=1)
    taking = AuditIngestion(agent.folder / "state", spool, source="log")
    stopping = threading.Event()
    thread = threading.Thread(target=AuditLog(agent.log, taking).run, args=(stopping,))
    thread.start()
    stopping.set()
    thread.join(60)
    spool.close()

    assert not thread.is_alive()
    assert taking.checkpoint.position is None
    agent.read()
    assert agent.seen() == [0, 1, 2]


def test_full_disk_is_waited_for(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the spool nor the checkpoint can be written at first."""

    def failing(real: Callable[..., None]) -> Callable[..., None]:
        failures = [Full("no space left on device")] * 2

        def call(*words: object, **more: object) -> None:
            if failures:
                raise failures.pop()
            real(*words, **more)

        return call

    monkeypatch.setattr(ingestion, "_RETRY_SECONDS", 0)
    monkeypatch.setattr(Spool, "append", failing(Spool.append))
    monkeypatch.setattr(ingestion, "save_checkpoint", failing(ingestion.save_checkpoint))
    agent.log.write_bytes(touch(0) + touch(1))
    agent.read()

    assert agent.seen() == [0, 1]
    assert load_checkpoint(agent.folder / "state" / "checkpoint.json").position is not None
