"""A batch of events is read whatever it came in, and refused as a whole."""

import gzip
import resource

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as some

from clew.prov.events import AnyEvent, Ended, Gap, Looked, to_batch, to_lines
from clew.server.parsers import event_batches

UIDS = some.text("0123456789abcdef", min_size=32, max_size=32)
TEXT = some.text(some.characters(codec="utf-8"), max_size=20)
NUMBERS = some.integers(-(2**63) + 1, 2**63 - 1)
EVENTS = some.lists(
    some.one_of(
        some.builds(Ended, execution=UIDS, n=NUMBERS, at=NUMBERS, activity=TEXT, status=NUMBERS),
        some.builds(Gap, execution=UIDS, n=NUMBERS, at=NUMBERS, activity=TEXT, what=TEXT, why=TEXT),
        some.builds(
            Looked, execution=UIDS, n=NUMBERS, at=NUMBERS, activity=TEXT, kind=TEXT, locator=TEXT
        ),
    )
)


@given(EVENTS, some.sampled_from(["", "identity", "zstd", "gzip"]))
def test_what_was_sent_is_read(events: list[AnyEvent], coding: str) -> None:
    def coded(body: bytes) -> bytes:
        return _compressed(body, coding) if coding in ("zstd", "gzip") else body

    for kind, body in (
        ("application/x-ndjson", b"".join(to_lines(events))),
        ("application/msgpack", to_batch(events)),
    ):
        assert (
            event_batches.parse_batch(event_batches.decompress(coded(body), coding), kind) == events
        )


@given(EVENTS, some.binary(min_size=1, max_size=40))
def test_a_batch_with_junk_is_read_or_refused(events: list[AnyEvent], junk: bytes) -> None:
    """Never anything but Malformed; of MessagePack nothing may follow the array."""
    for kind, body in (
        ("application/x-ndjson", b"".join(to_lines(events)) + junk),
        ("application/msgpack", to_batch(events) + junk),
    ):
        try:
            assert event_batches.parse_batch(body, kind)[: len(events)] == events
        except event_batches.Malformed as error:
            assert error.http_status == 422


@pytest.mark.timeout(60)  # minutes, where each piece of the rest is copied with all before it
@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_what_follows_a_compressed_batch_is_not_gone_through(coding: str) -> None:
    with pytest.raises(event_batches.Malformed):
        event_batches.decompress(
            _compressed(b"", coding) + bytes(event_batches.MAX_BATCH_BYTES), coding
        )


@given(some.binary(max_size=60), some.sampled_from(["zstd", "gzip"]))
def test_what_is_not_compressed_is_malformed(junk: bytes, coding: str) -> None:
    try:
        event_batches.decompress(junk, coding)
    except event_batches.Malformed as error:
        assert coding in error.message


def test_the_event_that_no_database_holds_is_found() -> None:
    good = Gap(execution="0" * 32, n=1, at=1, activity="x", what="", why="")
    large = Gap(execution="0" * 32, n=2**63, at=1, activity="x", what="", why="")
    zero = Gap(execution="0" * 32, n=1, at=1, activity="x\0", what="", why="")
    assert event_batches.find_unstorable([good, good]) is None
    extension = msgspec.msgpack.Ext(5, b"x")  # rejected elsewhere, and no failure here
    odd = Ended(execution="ab" * 16, n=1, at=1, activity="x", facets={"x": extension})
    assert event_batches.find_unstorable([odd]) is None
    for bad in (large, zero):
        found = event_batches.find_unstorable([good, bad])
        assert found is not None
        assert "event 2" in found.message


def test_what_unfolds_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_batches, "MAX_DECOMPRESSED_BYTES", 1000)
    for coding in ("zstd", "gzip"):
        assert len(event_batches.decompress(_compressed(bytes(1000), coding), coding)) == 1000
        with pytest.raises(event_batches.TooLarge):
            event_batches.decompress(_compressed(bytes(1001), coding), coding)


def facets(value: bytes) -> bytes:
    """An event in MessagePack whose facet holds this."""
    event = Ended(execution="ab" * 16, n=1, at=1, activity="x", facets={"x": None})
    (raw,) = msgspec.msgpack.decode(to_batch([event]), type=list[msgspec.Raw])
    return bytes(raw).replace(b"\xa1x\xc0", b"\xa1x" + value)


def array(count: int, of: bytes) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + of * count


@pytest.mark.parametrize(
    "body",
    [
        b"\xdd\xff\xff\xff\xff",
        b"\xdd\x08\x00\x00\x00" * 100 + bytes(43),
        b"\xdc\xff\xff" + b"\xc0" * 0xFFFF,
        array(1 << 20, b"\x90"),
        array(1, facets(array(8 << 20, b"\x90"))),
        array(1, facets(b"\x91" * 100_000 + b"\xc0")),
        array(1, facets(b"\x91" * 200 + b"\xc0")),
        array(4, facets(array(1 << 20, b"\x90"))),
        array(4, facets(array(1 << 20, b"\xa0"))),
        array(1, facets(b"\xdd\x7f\xff\xff\xff")),
    ],
    ids=len,
)
def test_a_document_that_takes_much_memory_is_refused(body: bytes) -> None:
    small = zstandard.compress(body)
    assert len(small) < 5000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((event_batches.Malformed, event_batches.TooLarge)):
        event_batches.parse_batch(event_batches.decompress(small, "zstd"), "application/msgpack")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10  # KiB


@pytest.mark.parametrize(
    "body",
    [
        b"\n" * (10 << 20),
        b'{"event":"ended","facets":{"x":[' + b"[]," * (3 << 20) + b"[]]}}",
        b'{"event":"ended","facets":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        b"[" * 1_000_000,
    ],
    ids=len,
)
def test_lines_that_take_much_memory_are_refused(body: bytes) -> None:
    with pytest.raises((event_batches.Malformed, event_batches.TooLarge)):
        event_batches.parse_batch(
            event_batches.decompress(zstandard.compress(body), "zstd"), "application/x-ndjson"
        )


def test_little_may_not_unfold_to_very_much() -> None:
    for body in (zstandard.compress(bytes(64 << 20)), gzip.compress(bytes(64 << 20))[:-8]):
        coding = "zstd" if body[0] == 0x28 else "gzip"
        with pytest.raises(event_batches.TooLarge):
            event_batches.decompress(body, coding)


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_what_was_cut_off_is_malformed(coding: str) -> None:
    """Its beginning alone would be a batch, too."""
    whole = _compressed(b"line\n" * 100_000, coding)
    for wrong in (whole[:-1], whole[:-9], whole[: len(whole) // 2], b"", whole + b"more"):
        with pytest.raises(event_batches.Malformed):
            event_batches.decompress(wrong, coding)


def _compressed(data: bytes, coding: str) -> bytes:
    return zstandard.compress(data) if coding == "zstd" else gzip.compress(data)
