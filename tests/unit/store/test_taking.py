"""What is brought in packs is stored if it is what it says, and only what is missing is brought."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import blake3
import pytest

from clew.errors import UsageError
from clew.store import Store, packs
from clew.store.records import digest_of, named
from clew.store.remotes import taking
from clew.store.remotes.taking import Taking


class Door:
    """Another store, as one sends to it."""

    at_once = 1

    def __init__(self, to: Taking) -> None:
        self._to = to
        self.packs: list[bytes] = []

    def lacking(self, chunks: Sequence[bytes]) -> set[bytes]:
        return set(self._to.lacking(chunks))

    def untold(self, contents: Sequence[bytes]) -> set[bytes]:
        return set(self._to.missing(contents))

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        self.packs.append(pack)
        self._to.take(pack)
        return len(pack)


def send(here: Store, there: Store, *contents: str) -> Door:
    """Send these; whatever was missing there is there then."""
    door = Door(there.taking())
    here.flush()
    wanted = here.hold(contents)
    missing = door.untold(wanted)
    with here.sending(door, lambda done, total: None) as sending:
        sending.send([digest for digest in wanted if digest in missing])
        sending.finish()
    assert there.taking().missing(wanted) == []
    return door


def test_contents_of_every_kind_arrive(here: Store, there: Store, tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(5 << 20)
    hollow = tmp_path / "hollow"
    with hollow.open("wb") as file:
        file.write(b"begin")
        file.seek(40 << 20)
        file.write(noise[:1000])
    contents = [
        here.put_bytes(b"").digest,
        here.put_bytes(b"small").digest,
        here.put_bytes(noise).digest,
        here.put_file(bytes(hollow)).digest,
    ]
    send(here, there, *contents)
    for content in contents:
        assert b"".join(there.read(content)) == b"".join(here.read(content))
    assert there.fsck().problems == []


def test_only_what_is_missing_travels(here: Store, there: Store) -> None:
    noise = random.Random(2).randbytes(6 << 20)
    first = here.put_bytes(noise).digest
    assert sum(map(len, send(here, there, first).packs)) > len(noise)
    changed = here.put_bytes(noise[: 3 << 20] + b"more" + noise[3 << 20 :]).digest
    assert sum(map(len, send(here, there, changed).packs)) < 1 << 20
    assert send(here, there, first, changed).packs == []


def test_a_content_that_is_there_only_as_a_part_gets_its_name(here: Store, there: Store) -> None:
    noise = random.Random(3).randbytes(4 << 20)
    whole = here.put_bytes(noise).digest
    send(here, there, whole)
    parts = here._reader.parts(digest_of(whole) or b"")
    part = here.put_bytes(noise[: parts[0][1]]).digest
    assert part == named(parts[0][0])
    assert not there.has(part)
    assert send(here, there, part).packs == []
    assert b"".join(there.read(part)) == noise[: parts[0][1]]


def test_what_is_not_what_it_says_is_refused(here: Store, there: Store) -> None:
    content = here.put_bytes(random.Random(4).randbytes(3 << 20)).digest
    (pack, *_) = send(here, there, content).packs
    for at in random.Random(5).sample(range(len(pack)), 30):
        spoilt = bytearray(pack)
        spoilt[at] ^= 1
        with pytest.raises(UsageError):
            there.taking().take(bytes(spoilt))
    for length in (0, 7, 100, len(pack) - 1):
        with pytest.raises(UsageError):
            there.taking().take(pack[:length])
    there.taking().take(pack)
    assert there.fsck().problems == []


def test_a_record_must_be_true(there: Store) -> None:
    chunk = there.put_bytes(b"a chunk")
    there.flush()
    raw = digest_of(chunk.digest) or b""
    other = blake3.blake3(b"something else").digest()
    for parts, said in (([(raw, 7)], "digest"), ([(other, 7)], "not here")):
        file = packs.File(blake3.blake3(b"claimed").digest(), 7, 0, packs.pack_parts(parts))
        with pytest.raises(UsageError, match=said):
            there.taking().take(_pack(packs.Table([], [file])))
        assert not there.has(named(file.digest))


def test_nothing_may_unfold_to_too_much(there: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "MOST", 1000)
    data = bytes(2000)
    chunk = packs.Chunk(blake3.blake3(data).digest(), 2000, True)
    block = packs.Block(len(packs.MAGIC), 2000, 2000, packs.RAW, [chunk])
    with pytest.raises(UsageError, match="too much"):
        there.taking().take(_pack(packs.Table([block], []), data))


def test_what_is_on_its_way_is_not_swept(here: Store, there: Store, tmp_path: Path) -> None:
    content = here.put_bytes(b"on its way").digest
    send(here, there, content)
    with Store(tmp_path / "there") as other:
        assert other.gc(list).files == 0
        there.close()
        assert other.gc(list).files == 1


def _pack(table: packs.Table, data: bytes = b"") -> bytes:
    body = packs.MAGIC + data
    return body + packs.encode(table, position=len(body))
