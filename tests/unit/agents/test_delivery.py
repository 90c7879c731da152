"""The spool and the sender: nothing is lost or left over, whatever fails."""

import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from blake3 import blake3

from clew.agents.agent import run_agent
from clew.agents.sender import Sender
from clew.agents.spool import REFUSED_SHARE, Spool
from clew.documents.ids import Digest, Locator, Uid
from clew.errors import Busy, Full, Rejected
from clew.prov.cluster.watch_declarations import UNWATCHED
from clew.prov.events import AnyEvent, Content, Looked, Started, Used, Version
from clew.prov.export.recorded_events import list_stored_digests
from clew.store import Store
from clew.store.errors import Unreachable

PODS = [Uid(f"{number:032x}") for number in range(8)]


def begin(pod: Uid) -> AnyEvent:
    return Started(execution=pod, n=0, at=1, activity=pod, kind="pod")


def content_of(pod: Uid, data: bytes) -> AnyEvent:
    digest = Digest(f"blake3:{blake3(data).hexdigest()}")
    version = Version(Locator("configmap://team/settings"), pod, 1)
    return Content(
        execution=pod, n=0, at=1, version=version, digest=digest, size=len(data), mode=0, mtime=0
    )


class Taker:
    """A destination that remembers what it took, and fails as it is told."""

    def __init__(self) -> None:
        self.taken: list[AnyEvent] = []
        self.contents: list[bytes] = []
        self.failures: list[Exception] = []
        self.refused: set[Uid] = set()

    def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
        if self.failures:
            raise self.failures.pop(0)
        if self.refused & {event.execution for event in events}:
            raise Rejected("forged")
        self.contents += [contents.read_whole(Digest(d)) for d in list_stored_digests(events)]
        self.taken += events

    def close(self) -> None: ...


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    found = Spool(tmp_path / "spool")
    yield found
    found.close()


def test_events_are_delivered_in_order_and_then_removed(spool: Spool) -> None:
    for pod in PODS:
        spool.append([begin(pod)])
    taker = Taker()
    sender = Sender(spool, taker)

    assert sender.deliver_some()
    assert [event.execution for event in taker.taken] == PODS
    assert all(event.n for event in taker.taken), "the spool numbers events"
    assert not sender.deliver_some()
    assert spool.list_batches() == []


def test_events_survive_a_restart_with_their_contents(tmp_path: Path) -> None:
    before = Spool(tmp_path / "spool")
    before.append([begin(PODS[0]), content_of(PODS[0], b"data")], [b"data"])
    before.close()
    (tmp_path / "spool" / "0000000000000009.part").write_bytes(b"half of a batch")
    again = Spool(tmp_path / "spool")
    taker = Taker()
    Sender(again, taker).deliver_some()

    assert taker.contents == [b"data"]
    with again.open_contents() as store:
        assert not store.has(Digest(f"blake3:{blake3(b'data').hexdigest()}")), "it was delivered"
    assert [path.name for path in (tmp_path / "spool").glob("*.part")] == []
    again.close()


def test_an_outage_loses_nothing(spool: Spool) -> None:
    taker = Taker()
    taker.failures = [Unreachable("away"), Unreachable("away")]
    spool.append([begin(PODS[0])])
    sender = Sender(spool, taker)
    for _ in range(2):
        with pytest.raises(Unreachable):
            sender.deliver_some()
    spool.append([begin(PODS[1])])
    stopping = threading.Event()
    stopping.set()
    sender.run(stopping)

    assert [event.execution for event in taker.taken] == PODS[:2]


def test_an_agent_ends_although_the_server_hangs(spool: Spool) -> None:
    """What was not confirmed stays for the next start."""
    asked, answered = threading.Event(), threading.Event()

    class Hanging(Taker):
        def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
            asked.set()
            answered.wait(60)

    class Witness:
        def run(self, stopping: threading.Event) -> None:
            spool.append([begin(PODS[0])])
            asked.wait()
            signal.raise_signal(signal.SIGTERM)
            assert stopping.is_set()

    try:
        run_agent(Witness(), spool, Hanging, last_seconds=0.1)
        assert len(spool.list_batches()) == 1
    finally:
        answered.set()


def test_a_refused_execution_does_not_hold_up_others(spool: Spool, tmp_path: Path) -> None:
    spool.append([begin(pod) for pod in PODS])
    taker = Taker()
    taker.refused = {PODS[3]}
    sender = Sender(spool, taker)
    sender.deliver_some()

    assert {event.execution for event in taker.taken} == {*PODS} - {PODS[3]}
    assert sender.refused == 1
    (kept,) = (tmp_path / "spool" / "refused").iterdir()
    assert [event.execution for event in spool.read(kept)] == [PODS[3]]


def test_a_container_whose_accesses_are_refused_counts_as_watched_no_longer(spool: Spool) -> None:
    class TakesNoUses(Taker):
        def deliver(self, events: Sequence[AnyEvent], contents: Store) -> None:
            if any(isinstance(event, Used) for event in events):
                raise Rejected("too long")
            super().deliver(events, contents)

    pod, container = PODS[0], Uid(f"{PODS[0]}/main")
    own = {"execution": pod, "n": 0, "at": 5, "activity": container}
    places = [Locator(f"pvc://ml/data@pv-1/{name}") for name in "ab"]
    used = [Used(**own, version=Version(place, pod, 1)) for place in places]  # type: ignore[arg-type]
    spool.append([begin(pod), *used])
    taker = TakesNoUses()
    Sender(spool, taker).deliver_some()
    (look,) = taker.taken
    assert isinstance(look, Looked)
    assert (look.activity, look.kind, look.locator) == (container, UNWATCHED, "pvc://ml/data")


def test_a_damaged_batch_is_kept_aside(spool: Spool, tmp_path: Path) -> None:
    for pod in PODS[:2]:
        spool.append([begin(pod)])
    first = spool.list_batches()[0]
    first.write_bytes(b"\0" * first.stat().st_size)
    taker = Taker()
    Sender(spool, taker).deliver_some()

    assert [event.execution for event in taker.taken] == [PODS[1]]
    assert [path.name for path in (tmp_path / "spool" / "refused").iterdir()] == [
        f"{first.name}.damaged"
    ]


def test_the_oldest_refused_batches_make_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limit = 8000
    spool = Spool(tmp_path / "spool", limit=limit)
    for pod in PODS * 4:
        spool.set_aside([begin(pod)])
    refused = tmp_path / "spool" / "refused"
    kept = sorted(path.name for path in refused.iterdir())
    assert 0 < sum(path.stat().st_size for path in refused.iterdir()) <= limit // REFUSED_SHARE
    assert kept[-1] == f"{len(PODS) * 4:016d}.batch"
    assert spool.deleted == len(PODS) * 4 - len(kept) > 0
    assert f"{spool.deleted} since the start" in caplog.text
    spool.close()

    again = Spool(tmp_path / "spool", limit=limit)
    assert again.set_aside([begin(PODS[0])]).name > kept[-1]  # no name is used twice
    again.close()


def test_a_full_spool_takes_nothing_until_it_was_delivered(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", limit=300)
    taken = []
    with pytest.raises(Full):
        for pod in PODS * 10:
            spool.append([begin(pod)])
            taken.append(pod)
    taker = Taker()
    Sender(spool, taker).deliver_some()

    assert [event.execution for event in taker.taken] == taken
    assert spool.wait_for_room(0)
    spool.close()


def test_one_agent_uses_a_spool(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(Busy):
        Spool(tmp_path / "spool")


def test_a_full_disk_keeps_what_was_appended(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.append([begin(PODS[0])])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("clew.agents.spool.os.fsync", full)
        with pytest.raises(Full):
            spool.append([begin(PODS[1])])
    spool.append([begin(PODS[2])])
    taker = Taker()
    Sender(spool, taker).deliver_some()

    assert [event.execution for event in taker.taken] == [PODS[0], PODS[2]]


def test_contents_of_waiting_batches_are_not_deleted(spool: Spool) -> None:
    spool.append([begin(PODS[0]), content_of(PODS[0], b"one")], [b"one"])
    spool.delete_delivered_contents()
    taker = Taker()
    Sender(spool, taker).deliver_some()

    assert taker.contents == [b"one"]
