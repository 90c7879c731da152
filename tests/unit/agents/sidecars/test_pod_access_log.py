"""The log of a sidecar is read once and to its end, whatever happens to the log or to the agent."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.agents.sidecars.sidecar_pods import POD, UID, pod

from clew.agents.sidecars import pod_access_log
from clew.agents.sidecars.access_log_files import LogDirectory
from clew.agents.sidecars.node_logs import NodeLogs
from clew.agents.sidecars.pod_access_log import PodLog
from clew.agents.sidecars.pod_contexts import read_context
from clew.agents.sidecars.traffic_sidecar_names import (
    DROPPED,
    LABEL,
    LOG,
    LOG_VOLUME,
    USER,
)
from clew.agents.spool import Spool
from clew.errors import Full
from clew.prov.events import AnyEvent, Content, Gap, Generated, Looked, Used
from clew.witness.volumes.selection import Policy, Rule

EVERYTHING = Policy(exclude=())


def put(number: int) -> bytes:
    """A line of the log: the Pod wrote the object `oNUMBER`."""
    line = {
        "kind": "s3", "start": f"{1795060800 + 60 + number}.0", "method": "PUT", "status": 200,
        "path": f"/lake/o{number}", "host": "s3:7070", "etag": f'"{number}"', "received": 1,
    }  # fmt: skip
    return json.dumps(line).encode() + b"\n"


class Reader:
    """An agent that is started again and again."""

    def __init__(self, folder: Path) -> None:
        self.volume = folder / "kubelet" / "pods" / UID / "volumes/kubernetes.io~empty-dir"
        self.log = self.volume / LOG_VOLUME / LOG
        self.log.parent.mkdir(parents=True)
        self.folder = folder

    def write(self, *numbers: int) -> None:
        with open(self.log, "ab") as file:
            file.write(b"".join(map(put, numbers)))

    def rotate(self, number: int) -> None:
        self.log.rename(f"{self.log}.{number}")

    def read(
        self, *, gone: bool = False, limit: int = 1 << 30, policy: Policy = EVERYTHING
    ) -> None:
        spool = Spool(self.folder / "spool", limit=limit)
        try:
            logs = NodeLogs(
                spool, self.folder / "state", policy=policy, kubelet=self.folder / "kubelet"
            )
            logs.see(pod())
            if gone:
                logs.forget(UID)
            while logs.read_available():
                pass
            stopping = threading.Event()
            stopping.set()
            logs.run(stopping)
        finally:
            spool.close()

    def events(self) -> list[AnyEvent]:
        spool = Spool(self.folder / "spool")
        found = [event for batch in spool.list_batches() for event in spool.read(batch)]
        spool.close()
        return list({(one.execution, one.n): one for one in found}.values())

    def written(self) -> list[int]:
        made = (one for one in self.events() if isinstance(one, Generated))
        return [int(one.version.locator.removeprefix("s3://lake/o")) for one in made]

    def gaps(self) -> list[str]:
        return [one.why for one in self.events() if isinstance(one, Gap)]

    def confirmed(self) -> str:
        return (self.log.parent / "confirmed").read_text().strip()

    def end(self) -> str:
        status = self.log.stat()
        return f"{status.st_ino} {status.st_size}"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_lines_are_read_once_across_restarts(reader: Reader) -> None:
    reader.write(1, 2)
    reader.read()
    assert reader.confirmed() == reader.end()
    reader.read()
    reader.write(3)
    reader.read()
    assert reader.written() == [1, 2, 3]
    assert reader.gaps() == []
    assert reader.confirmed() == reader.end()


def test_an_empty_log_is_confirmed(reader: Reader) -> None:
    reader.log.touch()
    reader.read()
    assert reader.confirmed() == reader.end()


def test_half_a_line_waits_for_its_end(reader: Reader) -> None:
    line = put(1)
    reader.log.write_bytes(line[:30])
    reader.read()
    assert reader.written() == []
    with open(reader.log, "ab") as file:
        file.write(line[30:])
    reader.read()
    assert reader.written() == [1]


def test_rotated_files_are_read_in_order_and_deleted(reader: Reader) -> None:
    reader.write(1)
    reader.read()
    reader.write(2)
    for number in (9, 10):
        reader.rotate(number)
        reader.write(number)
    reader.read()
    assert reader.written() == [1, 2, 9, 10]
    assert reader.gaps() == []
    assert not list(reader.log.parent.glob(f"{LOG}.*"))
    assert reader.confirmed() == reader.end()


def test_a_crash_before_the_checkpoint_repeats_the_same_events(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader.write(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(pod_access_log, "_save", crash)
        with pytest.raises(KeyboardInterrupt):
            reader.read()
    before = reader.events()
    reader.read()
    assert reader.events()[: len(before)] == before
    assert reader.written() == [1, 2]


def crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_full_spool_leaves_the_log_unread(reader: Reader) -> None:
    reader.write(1)
    spool = Spool(reader.folder / "spool", limit=1)
    log = PodLog(LogDirectory(reader.log.parent), reader.folder / "checkpoint", spool)
    log.set_context(read_context(pod()))
    with pytest.raises(Full):
        log.read()
    assert not (reader.log.parent / "confirmed").exists()
    log.close()
    spool.close()
    spool = Spool(reader.folder / "spool")
    log = PodLog(LogDirectory(reader.log.parent), reader.folder / "checkpoint", spool)
    log.set_context(read_context(pod()))
    assert log.read()
    log.close()
    spool.close()
    assert reader.written() == [1]


def test_a_request_waits_for_the_api_server_to_name_its_container(reader: Reader) -> None:
    """However long that is away: the request is old when it answers again."""
    reader.write(1)
    spool = Spool(reader.folder / "spool")
    kubelet = reader.folder / "kubelet"
    logs = NodeLogs(spool, reader.folder / "state", policy=EVERYTHING, kubelet=kubelet)
    logs.see(pod(containerStatuses=[]))
    for connected in (False, True):
        logs.set_connected(connected)
        while logs.read_available():
            pass
        assert logs.lines == 0
    logs.see(pod())
    assert logs.read_available()
    spool.close()
    (made,) = (one for one in reader.events() if isinstance(one, Generated))
    assert made.activity == f"{POD}/{'c' * 64}"


def test_what_was_lost_is_a_gap(reader: Reader) -> None:
    reader.write(1)
    reader.read()
    reader.log.unlink()  # the next file may get its inode
    reader.write(2, 3)
    (reader.log.parent / "dropped").write_text("3\n")
    reader.read()
    reader.log.write_bytes(b"")
    reader.read()
    reader.log.write_bytes(b"not a line\n")
    reader.read()
    reader.read()
    assert reader.written() == [1, 2, 3]
    whys = " ".join(reader.gaps())
    for part in ("removed unread", "deleted 3 files", "truncated", "damaged or too long"):
        assert part in whys
    assert len(reader.gaps()) == 4


def test_the_rest_is_read_when_the_pod_is_gone(reader: Reader) -> None:
    reader.write(1)
    reader.read()
    reader.write(2)
    reader.log.write_bytes(reader.log.read_bytes() + put(3)[:-1])
    reader.read(gone=True)
    assert reader.written() == [1, 2, 3]
    assert os.listdir(reader.folder / "state") == []


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_file_is_not_opened(reader: Reader, kind: str) -> None:
    secret = reader.folder / "secret"
    secret.write_bytes(put(7))
    if kind == "link":
        reader.log.symlink_to(secret)
        (reader.log.parent / "confirmed").symlink_to(secret)
        (reader.log.parent / "dropped").symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(reader.log)
        os.mkfifo(reader.log.parent / "dropped")
    else:
        reader.log.mkdir()
    reader.read()
    reader.read(gone=True)
    assert reader.events() == []
    assert secret.read_bytes() == put(7)


def test_numbers_of_a_forged_log_do_not_end_the_agent(reader: Reader) -> None:
    common = {"kind": "s3", "start": "1795060860.0", "status": 200, "host": "s3:7070"}
    common |= {"path": "/lake/o", "method": "PUT", "received": 2**60}
    part = {**common, "upload": "u", "decoded_length": "9" * 18, "etag": f'"{"0" * 32}"'}
    lines = [common] * 40 + [{**part, "part": str(number)} for number in range(1, 40)]
    lines.append({**common, "method": "POST", "upload": "u"})
    reader.log.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    (reader.log.parent / DROPPED).write_bytes(b"9" * 20)
    reader.read(gone=True)
    events = reader.events()
    assert all(one.size < 2**63 for one in events if isinstance(one, Content))
    assert any(isinstance(one, Generated) for one in events)


def test_a_selected_pod_without_the_sidecar_is_a_gap(reader: Reader) -> None:
    bare = pod()
    del bare["spec"]["initContainers"]
    bare["metadata"]["labels"] = {LABEL: "true"}
    spool = Spool(reader.folder / "spool")
    logs = NodeLogs(
        spool, reader.folder / "state", policy=EVERYTHING, kubelet=reader.folder / "kubelet"
    )
    for _ in range(3):
        logs.see(bare)
        logs.read_available()
    spool.close()
    assert reader.gaps() == ["the Pod was selected, and admitted without the sidecar"]


@pytest.mark.parametrize(
    ("uid", "gid", "evades"), [(USER, USER, True), (USER, 0, False), (0, USER, False)]
)
def test_an_image_with_the_user_and_the_group_of_the_sidecar_is_a_gap(
    reader: Reader, uid: int, gid: int, evades: bool
) -> None:
    evading = pod()
    (main,) = evading["status"]["containerStatuses"]
    main["user"] = {"linux": {"uid": uid, "gid": gid}}
    (sidecar, *_) = evading["status"]["initContainerStatuses"]
    sidecar["user"] = {"linux": {"uid": USER, "gid": USER}}
    spool = Spool(reader.folder / "spool")
    kubelet = reader.folder / "kubelet"
    logs = NodeLogs(spool, reader.folder / "state", policy=EVERYTHING, kubelet=kubelet)
    for _ in range(2):
        logs.see(evading)
        logs.read_available()
    spool.close()
    why = "a container has the user and the group of the sidecar, so it is not redirected"
    assert (why in reader.gaps()) == evades


@pytest.mark.parametrize(
    ("policy", "read"),
    [
        (Policy(select=(Rule(namespaces=("other",)),)), False),
        (Policy(exclude=(Rule(namespaces=("te*",)),)), False),
        (Policy(select=(Rule(containers=("trainer",)),)), False),
        (Policy(select=(Rule(namespaces=("team",), containers=("main",)),)), True),
        (Policy(exclude=(Rule(namespaces=("team",), paths=("*.log",)),)), True),
    ],
)
def test_a_log_is_read_and_confirmed_only_if_the_policy_selects_the_pod(
    reader: Reader, policy: Policy, read: bool
) -> None:
    reader.write(1)
    reader.read(policy=policy)
    assert reader.written() == ([1] if read else [])
    assert (reader.log.parent / "confirmed").exists() is read
    assert bool(reader.events()) is read


def test_a_log_that_is_gone_is_a_gap_unless_it_was_read(reader: Reader) -> None:
    elsewhere = reader.folder / "elsewhere"
    reader.write(1)
    reader.read()
    for state in (reader.folder / "state", reader.folder / "other state"):
        spool = Spool(reader.folder / "spool")
        logs = NodeLogs(spool, state, policy=EVERYTHING, kubelet=elsewhere)
        logs.see(pod(initContainerStatuses=[]))  # it has not started yet
        logs.see(pod())
        logs.read_available()
        spool.close()
    (gap,) = reader.gaps()
    assert "directory of the kubelet" in gap


@pytest.mark.parametrize("present", [True, False])
def test_a_restarted_agent_finishes_the_log_that_is_gone(reader: Reader, present: bool) -> None:
    """The last minute was not over when the agent before it ended. `present`: the Pod is still
    there; else it was deleted meanwhile."""
    reader.write(1, 2)
    spool = Spool(reader.folder / "spool")
    kubelet, state = reader.folder / "kubelet", reader.folder / "state"
    before = NodeLogs(spool, state, policy=EVERYTHING, kubelet=kubelet)
    before.see(pod())
    assert before.read_available()
    after = NodeLogs(spool, state, policy=EVERYTHING, kubelet=reader.folder / "gone")
    after.forget_absent({POD} if present else set())
    if present:
        after.see(pod())
    after.read_available()
    spool.close()
    counted = [one for one in reader.events() if isinstance(one, Looked)]
    assert {one.locator for one in counted} == {"s3://lake/o1", "s3://lake/o2"}
    assert [one.name for one in state.iterdir()] == ([POD] if present else [])
    assert reader.gaps() == []


@pytest.fixture(autouse=True)
def _no_use_of_unread_lines(reader: Reader) -> Iterator[None]:
    yield
    assert not [one for one in reader.events() if isinstance(one, Used)]
