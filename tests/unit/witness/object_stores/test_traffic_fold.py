"""What a Pod did with objects, as the lines of its sidecar's log tell it."""

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.documents.ids import Uid
from clew.errors import Rejected
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.event_validation import check_events
from clew.prov.events import (
    AnyEvent,
    Content,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    from_batch,
    to_batch,
)
from clew.witness.object_stores import connection_fold, versions
from clew.witness.object_stores.access_log import LogLine, parse_line
from clew.witness.object_stores.pod_context import PodContainer, PodContext
from clew.witness.object_stores.traffic_fold import TrafficFold, TrafficState

POD = Uid("0a1b2c3d000040008000000000000001")
SECOND = 10**9
SIDECAR = PodContainer(uid=Uid(f"{POD}/{'5' * 64}"), name="clew-sidecar", started=0, init=True)
MAIN = PodContainer(uid=Uid(f"{POD}/{'c' * 64}"), name="main", started=0)
OTHER = PodContainer(uid=Uid(f"{POD}/{'d' * 64}"), name="other", started=0)


def context(*containers: PodContainer, stores: tuple[str, ...] = ()) -> PodContext:
    return PodContext(
        uid=POD, namespace="team", name="train", node="one", started=0, sidecar=SIDECAR,
        containers=containers or (MAIN,), stores=stores,
    )  # fmt: skip


def request(method: str, path: str, at: int = 100, **fields: Any) -> LogLine:
    known = {"kind": "s3", "status": 200, "read_us": 1000, "answer_us": 2000, "all_us": 3000}
    return msgspec.convert(
        {**known, "start": f"{at}.0", "method": method, "path": path, "host": "s3:7070", **fields},
        LogLine,
    )


def fold(lines: Iterable[LogLine], pod: PodContext | None = None) -> list[AnyEvent]:
    found = TrafficFold(pod or context())
    events = [event for line in lines for event in found.add(line)]
    events += found.finish_minutes(2**62)
    events = list(number_events(events))
    check_events(POD, events)
    return events


def of(kind: type, events: list[AnyEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def places(events: list[Any]) -> list[str]:
    return [event.version.locator for event in events]


def test_a_write_and_a_read_elsewhere_have_the_same_digest() -> None:
    written = fold([request("PUT", "/lake/raw", etag='"abc"', answer_version="v1", received=5)])
    read = fold([request("GET", "/lake/raw", etag='"abc"', answer_version="v1", length="5")])
    (made,), (found,) = of(Content, written), of(Content, read)
    assert (made.digest, made.source, made.size) == ("etag:abc", "versionId=v1", 5)
    assert (found.digest, found.source, found.size) == (made.digest, made.source, made.size)
    assert of(Generated, written)[0].version.maker == MAIN.uid
    assert of(Used, read)[0].version.maker == POD
    assert of(Started, read)[1].activity == MAIN.uid


def test_a_write_contains_only_what_was_read_before_its_last_byte() -> None:
    events = fold(
        [
            request("PUT", "/lake/a", etag='"1"', read_us=5_000_000, all_us=9_000_000),
            request("GET", "/lake/b", etag='"2"', answer_us=7_000_000, length="1"),
        ]
    )
    assert of(Generated, events)[0].at == 105 * SECOND
    assert of(Used, events)[0].at == 107 * SECOND


def test_ranges_of_one_version_are_one_use() -> None:
    parts = [
        request(
            "GET", "/lake/big", status=206, etag='"e"', range=f"bytes={first}-{first + 9}",
            content_range=f"bytes {first}-{first + 9}/100", sent=10, caller="AKIA1",
        )
        for first in range(0, 100, 10)
    ]  # fmt: skip
    events = fold(parts)
    assert len(of(Used, events)) == len(of(Content, events)) == 1
    assert of(Content, events)[0].size == 100
    (summary,) = of(Looked, events)
    answer = msgspec.json.decode(summary.answer)
    assert (answer["requests"], answer["sent"]) == (10, 100)
    assert (answer["ranges"], answer["caller"]) == ([[0, 100]], "AKIA1")


def test_a_version_that_changed_between_two_ranges_is_two() -> None:
    lines = [
        request("GET", "/lake/big", status=206, etag=tag, content_range="bytes 0-9/100")
        for tag in ('"one"', '"two"')
    ]
    events = fold(lines)
    assert [event.version.ordinal for event in of(Used, events)] == [1, 2]


def test_the_parts_of_an_upload_are_one_version_with_the_etag_of_s3() -> None:
    digests = [hashlib.md5(part).hexdigest() for part in (b"a" * 5, b"b" * 3)]
    whole = hashlib.md5(b"".join(map(bytes.fromhex, digests))).hexdigest()
    parts = [
        request("PUT", "/lake/big", upload="u", part=str(number), etag=f'"{digest}"', received=size)
        for number, digest, size in ((2, digests[1], 3), (1, "0" * 32, 5), (1, digests[0], 5))
    ]
    begin = request("POST", "/lake/big", subresource="uploads")
    done = request("POST", "/lake/big", upload="u")
    events = fold([begin, *parts, done])
    assert places(of(Generated, events)) == ["s3://lake/big"]
    (content,) = of(Content, events)
    assert (content.digest, content.size) == (f"etag:{whole}-2", 8)
    assert of(Generated, fold([begin, *parts, request("DELETE", "/lake/big", upload="u")])) == []


def test_a_copy_reads_its_source_and_has_its_etag() -> None:
    events = fold(
        [
            request("HEAD", "/lake/raw", etag='"abc"', length="5"),
            request("GET", "/lake/raw", etag='"abc"', length="5"),
            request("PUT", "/lake/copy", copy_source="/lake/raw"),
            request("PUT", "/lake/again", copy_source="other/k%2Fx", copy_version="v7"),
        ]
    )
    assert places(of(Used, events)) == ["s3://lake/raw", "s3://other/k/x"]
    assert places(of(Generated, events)) == ["s3://lake/copy", "s3://lake/again"]
    assert [(c.version.locator, c.digest) for c in of(Content, events)] == [
        ("s3://lake/raw", "etag:abc"),
        ("s3://lake/copy", "etag:abc"),
    ]


def test_what_is_not_there_or_not_changed_is_a_look() -> None:
    lines = [
        request("GET", "/lake/none", status=404),
        request("HEAD", "/lake/none", status=404),
        request("GET", "/lake/raw", status=304, etag='"abc"'),
        request("HEAD", "/lake/raw", etag='"abc"', length="5"),
        request("GET", "/lake", prefix="dir/"),
    ]
    events = fold(lines)
    assert of(Used, events) == []
    looks = [(e.kind, e.locator, e.answer) for e in of(Looked, events) if e.kind != "accessed"]
    assert looks == [
        ("absent", "s3://lake/none", "404"),
        ("absent", "s3://lake/none", "404"),
        ("present", "s3://lake/raw", "etag=abc"),
        ("present", "s3://lake/raw", "etag=abc"),
        ("listing", "s3://lake/dir/", ""),
    ]


def test_a_delete_invalidates_the_version_it_names_or_the_latest() -> None:
    put = [
        request("PUT", "/lake/a", etag=f'"{n}"', answer_version=f"v{n}", received=1) for n in (1, 2)
    ]
    events = fold([*put, request("DELETE", "/lake/a", status=204)])
    assert of(Invalidated, events)[0].version.ordinal == 2
    events = fold([*put, request("DELETE", "/lake/a", status=204, version="v1")])
    assert of(Invalidated, events)[0].version.ordinal == 1
    events = fold([request("DELETE", "/lake/unknown", status=204)])
    assert of(Invalidated, events)[0].version.maker == POD


@pytest.mark.parametrize(
    "line",
    [
        request("PUT", "/lake/a", status=503),
        request("PUT", "/lake/a", status=0, flags="DC"),
        request("POST", "/lake/a", status=500, upload="u"),
        request("DELETE", "/lake/a", status=500),
        request("POST", "/lake", subresource="delete"),
        request("POST", "/lake", status=204),
        request("PUT", "/..%2f..%2fetc/passwd"),
        request("PUT", "http://other/x"),
        request("GET", "/%00/x"),
        request("GET", f"/lake/{'k' * 1025}"),
    ],
)
def test_what_cannot_be_known_is_a_gap(line: LogLine) -> None:
    events = fold([line])
    assert len(of(Gap, events)) == 1
    assert of(Generated, events) == of(Used, events) == of(Invalidated, events) == []


@pytest.mark.parametrize(
    ("host", "path", "expected"),
    [
        ("s3.example:9000", "/lake/a%2Fb", "s3://lake/a/b"),
        ("lake.s3.example:9000", "/a/../b", "s3://lake/a/../b"),
        ("lake.s3.example", "//a", "s3://lake//a"),
        ("lake.s3.eu-west-1.amazonaws.com", "/k", "s3://lake/k"),
        ("s3.dualstack.us-east-1.amazonaws.com", "/lake/k", "s3://lake/k"),
        ("my.lake.s3.amazonaws.com", "/k", "s3://my.lake/k"),
        ("s3:7070", "/lake/%25%ff%0A", "s3://lake/%25%FF\n"),
        ("s3:7070", "/s3%3A/%2e%2e/etc", None),
    ],
)
def test_addresses(host: str, path: str, expected: str | None) -> None:
    line = request("GET", path, host=host, etag='"e"', length="1")
    events = fold([line], context(stores=("s3.example:9000",)))
    assert places(of(Used, events)) == ([expected] if expected else [])


def test_several_containers_share_what_the_sidecar_did() -> None:
    events = fold(
        [
            request("GET", "/lake/in", etag='"1"', length="1"),
            request("PUT", "/lake/out", etag='"2"', received=1),
        ],
        context(MAIN, OTHER),
    )
    assert {event.activity for event in of(Used, events) + of(Generated, events)} == {SIDECAR.uid}
    passed = {(event.activity, event.by) for event in of(Informed, events)}
    assert passed == {
        pair for one in (MAIN, OTHER) for pair in ((one.uid, SIDECAR.uid), (SIDECAR.uid, one.uid))
    }
    assert {e.activity for e in of(Started, events)} == {POD, SIDECAR.uid, MAIN.uid, OTHER.uid}


def test_a_container_that_ended_is_not_the_one() -> None:
    first = msgspec.structs.replace(MAIN, ended=50 * SECOND)
    later = msgspec.structs.replace(OTHER, started=60 * SECOND)
    events = fold([request("GET", "/lake/a", etag='"1"', length="1")], context(first, later))
    assert of(Used, events)[0].activity == later.uid


def test_other_traffic_names_its_peer() -> None:
    def to(kind: str, **fields: Any) -> LogLine:
        return msgspec.convert({"kind": kind, "start": "100.0", **fields}, LogLine)

    events = fold(
        [
            to("http", peer="10.0.0.7:80", host="scores.team.svc.cluster.local"),
            to("http", peer="10.0.0.7:80", host="scores.team.svc.cluster.local"),
            to("http", peer="93.0.0.1:80", host="api.example:8080"),
            to("tls", peer="93.0.0.2:443", sni="Hub.example"),
            to("tcp", peer="[fd00::1]:5432"),
            to("tcp", peer="nonsense"),
            to("http", peer="10.0.0.9:80", host="bad host\n://x"),
            to("http", peer="10.0.0.10:80", host="web:8080"),
            to("tls", peer="10.0.0.11:443", sni="web.other"),
            to("http", peer="93.0.0.3:80", host="example.org"),
        ]
    )
    assert {(event.version.locator, event.how) for event in of(Used, events)} == {
        (place, "connect")
        for place in (
            *("ip://10.0.0.7", "service://team/scores", "ip://93.0.0.1", "http://api.example:8080"),
            *("ip://93.0.0.2", "https://hub.example", "ip://fd00::1", "ip://10.0.0.9"),
            *("ip://10.0.0.10", "service://team/web", "ip://10.0.0.11", "service://other/web"),
            *("ip://93.0.0.3", "http://example.org"),
        )
    }
    gaps = [gap.locator for gap in of(Gap, events)]
    assert gaps == ["https://hub.example", "service://other/web"]


def test_a_flood_of_peers_is_one_gap_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_fold, "MAX_PEERS", 3)
    lines = [
        LogLine(kind="tcp", start=f"{minute * 60}.0", peer=f"10.0.0.{number}:80")
        for minute in (1, 2)
        for number in range(9)
    ]
    events = fold(lines)
    assert len(of(Used, events)) == 6
    assert len(of(Gap, events)) == 2


def test_what_is_forgotten_does_not_give_an_ordinal_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "MAX_PLACES", 2)
    lines = [
        request("PUT", f"/lake/{key}", at=1_700_000_000 + n, etag=f'"{n}"', received=1)
        for n, key in enumerate("abcaab")
    ]
    made = [event.version for event in of(Generated, fold(lines))]
    assert len(set(made)) == len(made)


LINES = st.lists(
    st.builds(
        request,
        st.sampled_from(["GET", "PUT", "HEAD", "POST", "DELETE", "OPTIONS"]),
        st.sampled_from(["/lake", "/lake/a", "/lake/b", "/", "/%2e%2e/x"]) | st.text(max_size=20),
        at=st.integers(1, 10**9),
        status=st.sampled_from([None, 0, 200, 204, 206, 304, 404, 503]),
        etag=st.sampled_from([None, '"e1"', '"e2"', "W/x"]) | st.text(max_size=8),
        answer_version=st.sampled_from([None, "null", "v1", "v2"]) | st.text(max_size=8),
        upload=st.sampled_from([None, None, "u"]),
        part=st.sampled_from([None, "1", "x", "99999"]),
        copy_source=st.sampled_from([None, None, "lake/a", "//"]) | st.text(max_size=9),
        content_range=st.sampled_from([None, "bytes 0-4/9", "bytes */x", "bytes 9-1/3"]),
        length=st.sampled_from([None, "5", "-1", "9" * 30]),
        subresource=st.sampled_from([None, None, "uploads", "acl", "delete", "select"]),
        prefix=st.none() | st.text(max_size=5),
        host=st.sampled_from(["s3:7070", "lake.s3.amazonaws.com"]) | st.text(max_size=12),
    ),
    max_size=12,
)


@given(lines=LINES, cut=st.integers(0, 12))
def test_any_lines_give_valid_events_also_after_a_restart(lines: list[LogLine], cut: int) -> None:
    lines = [line for line in lines if parse_line(msgspec.json.encode(line))]
    whole = fold(lines)
    assert from_batch(to_batch(whole)) == whole
    first = TrafficFold(context())
    events = [event for line in lines[:cut] for event in first.add(line)]
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(first.state), type=TrafficState)
    second = TrafficFold(context(), state)
    events += [event for line in lines[cut:] for event in second.add(line)]
    events += second.finish_minutes(2**62)
    assert list(number_events(events)) == whole


@given(st.binary(max_size=200))
def test_a_line_of_any_bytes_is_a_line_or_none(raw: bytes) -> None:
    line = parse_line(raw)
    if line is not None:
        fold([line])


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"[]", b"{", b'{"kind":"ftp","start":"1"}', b'{"kind":"s3"}',
        b'{"kind":"s3","start":"x"}', b'{"kind":"s3","start":"-5"}',
        b'{"kind":"s3","start":"1","status":"200"}', b'{"kind":"s3","start":"1","sent":-1}',
        b'{"kind":"s3","start":"1","etag":"\\u0000"}',
        b'{"kind":"s3","start":"1","path":"' + b"a" * 70_000 + b'"}',
        b'{"kind":"tcp","start":"99999999999999999999"}',
        b'{"kind":"s3","start":"1","all_us":99999999999999999}', b"\xff\xfe",
    ],
)  # fmt: skip
def test_lines_that_no_sidecar_writes_are_refused(raw: bytes) -> None:
    assert parse_line(raw) is None


def test_only_an_object_may_have_an_etag_for_its_digest() -> None:
    (content,) = of(Content, fold([request("GET", "/lake/a", etag='"1"', length="1")]))
    elsewhere = msgspec.structs.replace(content.version, locator="https://lake/a")
    with pytest.raises(Rejected, match="digest"):
        check_events(POD, [msgspec.structs.replace(content, version=elsewhere)])
