"""Real clients of S3 use a real server through the sidecar, and the log becomes the graph."""

import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.local.s3_sidecar import KEY, s3_server, sidecar, use_objects

from clew.agents.sidecars.access_log_files import LogDirectory
from clew.agents.sidecars.certificates import AUTHORITIES, CERTIFICATE, issue, utc_now
from clew.agents.sidecars.certificates import KEY as KEY_FILE
from clew.agents.sidecars.pod_access_log import PodLog
from clew.agents.sidecars.traffic_sidecar_names import LOG
from clew.agents.spool import Spool
from clew.db.sqlite import SQLite
from clew.documents.ids import Uid
from clew.prov.events import (
    AnyEvent,
    Content,
    Gap,
    Generated,
    Invalidated,
    Looked,
    Used,
    to_lines,
)
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import find_ancestry
from clew.prov.queries.targets import resolve_target
from clew.witness.object_stores.pod_context import PodContainer, PodContext

NAMES = ("ingest", "train", "misuse")
CANARY = re.compile(rb"canary", re.IGNORECASE)


class Observed(NamedTuple):
    """What the Pods did: what their programs printed, their logs, and the events."""

    printed: dict[str, dict[str, Any]]
    logs: dict[str, bytes]
    events: dict[str, list[AnyEvent]]


def pod(number: int, name: str) -> PodContext:
    uid = Uid(f"{number:032x}")
    one = {"started": 0}
    return PodContext(
        uid=uid, namespace="team", name=name, node="one", started=0,
        sidecar=PodContainer(uid=Uid(f"{uid}/{'5' * 64}"), name="clew-sidecar", init=True, **one),
        containers=(PodContainer(uid=Uid(f"{uid}/{'c' * 64}"), name="main", **one),),
    )  # fmt: skip


def read_events(directory: Path, context: PodContext, state: Path) -> list[AnyEvent]:
    spool = Spool(state / "spool")
    log = PodLog(LogDirectory(directory), state / "checkpoint", spool)
    log.set_context(context)
    while log.read(last=True):
        pass
    assert log.unreadable == 0
    confirmed = (directory / "confirmed").read_text().split()
    status = (directory / LOG).stat()
    assert confirmed == [str(status.st_ino), str(status.st_size)]
    found = [event for batch in spool.list_batches() for event in spool.read(batch)]
    log.close()
    spool.close()
    return found


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    folder = tmp_path_factory.mktemp("s3")
    result = Observed({}, {}, {})
    with s3_server(folder / "server") as server:
        for number, name in enumerate(NAMES, 1):
            directory = folder / name / "log"
            with sidecar(directory, server) as port:
                result.printed[name] = use_objects(port, name)
            result.logs[name] = (directory / LOG).read_bytes()
            context = pod(number, name)
            result.events[name] = read_events(directory, context, folder / name)
    yield result


def listening_server() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def places(events: list[AnyEvent], kind: type) -> list[str]:
    return [event.version.locator for event in events if isinstance(event, kind)]  # type: ignore[attr-defined]


def test_signatures_stay_valid_and_all_answers_arrive(observed: Observed) -> None:
    train = observed.printed["train"]
    assert (train["range"], train["raw"], train["big"]) == (
        "a,b\n",
        "a,b\n1,2\n",
        2 * (5 << 20) + 7,
    )
    assert (train["signed"], train["s3fs"]) == ("signed", "written by s3fs")
    assert train["listed"] == ["plain/big", "plain/by-s3fs.txt", "plain/signed"]
    assert observed.printed["misuse"]["refused"] == ["NoSuchKey", "404"]


def test_writes_are_versions_with_the_digests_that_reads_have(observed: Observed) -> None:
    ingest, train = observed.events["ingest"], observed.events["train"]
    assert sorted(places(ingest, Generated)) == [
        "s3://lake/copy.csv",
        "s3://lake/odd/ü +&=?%252F\n.txt",
        "s3://lake/raw.csv",
        "s3://plain/big",
        "s3://plain/by-s3fs.txt",
        "s3://plain/signed",
    ]
    assert sorted(places(train, Used)) == [
        "s3://lake/raw.csv",
        "s3://plain/big",
        "s3://plain/by-s3fs.txt",
        "s3://plain/signed",
    ]
    assert places(train, Invalidated) == ["s3://plain/signed"]
    made = {e.version.locator: e for e in ingest if isinstance(e, Content)}
    for event in train:
        if isinstance(event, Content) and event.version.maker == event.execution:
            known = made[event.version.locator]
            assert (event.digest, event.size, event.source) == (
                known.digest,
                known.size,
                known.source,
            )
    assert made["s3://lake/copy.csv"].digest == made["s3://lake/raw.csv"].digest
    assert str(made["s3://lake/raw.csv"].source).startswith("versionId=")
    assert str(made["s3://plain/big"].source).startswith("etag=")


def test_the_summaries_say_who_read_how_much(observed: Observed) -> None:
    looks = [e for e in observed.events["train"] if isinstance(e, Looked) and e.kind == "accessed"]
    answers = [msgspec.json.decode(e.answer) for e in looks if e.locator == "s3://plain/big"]
    reads = [answer for answer in answers if answer["operation"] == "get"]
    assert {answer["caller"] for answer in reads} == {KEY}
    assert sum(answer["sent"] for answer in reads) == 2 * (5 << 20) + 7
    assert all(answer["ranges"] for answer in reads)


def test_what_cannot_be_seen_is_a_gap(observed: Observed) -> None:
    gaps = [e for e in observed.events["misuse"] if isinstance(e, Gap)]
    assert [(gap.what, gap.locator) for gap in gaps] == [
        ("which objects were deleted", "s3://plain")
    ]
    absent = [e for e in observed.events["misuse"] if isinstance(e, Looked) and e.kind == "absent"]
    assert {e.locator for e in absent} == {"s3://lake/missing"}


def test_no_secret_reaches_the_log_or_the_events(observed: Observed) -> None:
    for name in NAMES:
        signature = observed.printed[name].get("signature", "no signature").encode()
        for text in (observed.logs[name], b"".join(to_lines(observed.events[name]))):
            assert not CANARY.search(text)
            assert signature not in text
            assert b"Signature" not in text
            assert b"YmFzaWM" not in text
    assert b"AKIAOLDKEY" in observed.logs["misuse"]


def test_lineage_crosses_pods_by_objects(observed: Observed, tmp_path: Path) -> None:
    graph = Graph(SQLite(tmp_path / "graph.db"), Uid("p" * 32))
    for name in reversed(NAMES):  # any order of arrival
        graph.import_observations(observed.events[name])
    target = resolve_target(
        graph,
        "s3://lake/model.pkl",
        machine="m",
        locate=lambda path: path,
        digest_of=lambda _: None,
    )
    found = find_ancestry(graph, target, everything=True)
    assert [one.name for one in found.pods] == ["ingest", "train"]
    train = found.pods[-1]
    assert {one.locator for one in train.inputs if one.makers} == {
        "s3://lake/raw.csv",
        "s3://plain/big",
        "s3://plain/by-s3fs.txt",
        "s3://plain/signed",
    }
    assert not any(one.inferred for one in train.inputs)
    graph.connection.close()


def test_the_sidecar_opens_tls_to_hosts_that_are_named(tmp_path: Path) -> None:
    entries = issue("localhost", utc_now(), {})
    for name, content in entries.items():
        (tmp_path / name).write_bytes(content)
    pair = tmp_path / CERTIFICATE, tmp_path / KEY_FILE
    with s3_server(tmp_path / "server", certificate=pair) as server:
        with sidecar(tmp_path / "log", server, ca_file=tmp_path / AUTHORITIES) as port:
            use_objects(port, "ingest", host="localhost")
        made = places(read_events(tmp_path / "log", pod(9, "ingest"), tmp_path), Generated)
        assert "s3://lake/raw.csv" in made
        # It does not speak to a server that another authority vouches for.
        (tmp_path / AUTHORITIES).write_bytes(issue("localhost", utc_now(), {})[AUTHORITIES])
        with (
            sidecar(tmp_path / "other", server, ca_file=tmp_path / AUTHORITIES) as port,
            pytest.raises(urllib.error.HTTPError, match="503"),
        ):
            urllib.request.urlopen(f"http://localhost:{port}/lake")


def test_other_protocols_pass_unread_and_name_their_peer(tmp_path: Path) -> None:
    with listening_server() as server, sidecar(tmp_path / "log", port_of(server)) as port:
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"\0\1binary")
            peer, _ = server.accept()
            with peer:
                assert peer.recv(100) == b"\0\1binary"
                peer.sendall(b"answer")
                assert client.recv(100) == b"answer"
        tls = ssl.create_default_context()
        with socket.create_connection(("127.0.0.1", port)) as client:
            hello = ssl.MemoryBIO()
            session = tls.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="hub.example")
            with pytest.raises(ssl.SSLWantReadError):
                session.do_handshake()
            client.sendall(sent := hello.read())
            peer, _ = server.accept()
            with peer:
                assert peer.recv(len(sent)) == sent
    events = read_events(tmp_path / "log", pod(9, "talks"), tmp_path)
    assert set(places(events, Used)) == {"ip://127.0.0.1", "https://hub.example"}
    assert {e.locator for e in events if isinstance(e, Gap)} == {"https://hub.example"}


def test_requests_that_are_not_of_s3_keep_their_path_to_themselves(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Odd-Case: yes\r\n\r\nok"
    with (
        listening_server() as server,
        sidecar(tmp_path / "log", port_of(server)) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(
            b"GET //services/%2e%2e/path-canary/../x?token=canary HTTP/1.1\r\n"
            b"Host: scores.team.svc\r\nX-Own-Header: a\r\nReferer: canary\r\n\r\n"
        )
        peer, _ = server.accept()
        with peer:
            head = peer.recv(4096)
            peer.sendall(answer)
            assert client.recv(4096).endswith(b"ok")
    # unmodified: neither path nor the case of headers
    assert head.startswith(b"GET //services/%2e%2e/path-canary/../x?token=canary HTTP/1.1\r\n")
    assert b"X-Own-Header: a\r\n" in head
    assert not CANARY.search((tmp_path / "log" / LOG).read_bytes())
    events = read_events(tmp_path / "log", pod(9, "asks"), tmp_path)
    assert set(places(events, Used)) == {"ip://127.0.0.1", "service://team/scores"}


def test_hostile_names_cannot_forge_a_line(observed: Observed, tmp_path: Path) -> None:
    keys = [
        "/lake/%0A%7B%22kind%22:%22s3%22%7D",
        "/lake/a\"b',\\",
        "/..%2F..%2Fetc/passwd",
        "/lake/%2E%2E/%2e%2e/etc",
        "/lake/%FF%FE",
    ]
    with s3_server(tmp_path / "server") as server, sidecar(tmp_path / "log", server) as port:
        for key in keys:
            with socket.create_connection(("127.0.0.1", port)) as client:
                head = f"GET {key} HTTP/1.1\r\nHost: s3\r\nConnection: close\r\n"
                client.sendall(head.encode() + b'Range: "}\xff\xfe\r\n\r\n')
                while client.recv(65536):
                    pass
    lines = (tmp_path / "log" / LOG).read_bytes().splitlines()
    assert len(lines) == len(keys)
    events = read_events(tmp_path / "log", pod(9, "hostile"), tmp_path)
    assert not [e for e in events if isinstance(e, Used | Generated)]
    graph = Graph(SQLite(tmp_path / "graph.db"), Uid("p" * 32))
    graph.import_observations(events)
    graph.connection.close()


def test_an_answer_streams_through(tmp_path: Path) -> None:
    """A client gets the first bytes while the server still sends."""
    with (
        listening_server() as server,
        sidecar(tmp_path / "log", port_of(server)) as port,
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        peer, _ = server.accept()
        with peer:
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\nfirst")
            received = b""
            while b"first" not in received:
                received += client.recv(4096)
