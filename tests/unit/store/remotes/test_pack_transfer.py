"""What is brought in packs is stored if it is what it says, and only what is missing is brought."""

import random
import resource
from collections.abc import Sequence
from pathlib import Path

import blake3
import pytest
import zstandard

from clew.errors import UsageError
from clew.store import Store
from clew.store.packs import pack_format
from clew.store.remotes import upload
from clew.store.remotes.pack_transfer import PackImport
from clew.store.types import format_digest, parse_digest


class Door:
    """Another store, as one sends to it."""

    parallel_packs = 1

    def __init__(self, to: PackImport) -> None:
        self._to = to
        self.packs: list[bytes] = []

    def find_missing_chunks(self, chunks: Sequence[bytes]) -> set[bytes]:
        return set(self._to.missing_chunks(chunks))

    def find_missing_records(self, contents: Sequence[bytes]) -> set[bytes]:
        return set(self._to.missing_contents(contents))

    def put_pack(self, pack: bytes, tail: bytes) -> int:
        self.packs.append(pack)
        self._to.import_pack(pack)
        return len(pack)


def send(here: Store, there: Store, *contents: str) -> Door:
    """Send these; whatever was missing there is there then."""
    door = Door(there.pack_import())
    here.flush()
    wanted = here.hold(contents)
    missing = door.find_missing_records(wanted)
    with here.start_upload(door, lambda done, total: None) as sending:
        sending.send([digest for digest in wanted if digest in missing])
        sending.finish()
    assert there.pack_import().missing_contents(wanted) == []
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
    parts = here._reader.parts(parse_digest(whole) or b"")
    part = here.put_bytes(noise[: parts[0][1]]).digest
    assert part == format_digest(parts[0][0])
    assert not there.has(part)
    assert send(here, there, part).packs == []
    assert b"".join(there.read(part)) == noise[: parts[0][1]]


def test_a_damaged_pack_is_refused(here: Store, there: Store) -> None:
    content = here.put_bytes(random.Random(4).randbytes(3 << 20)).digest
    (pack, *_) = send(here, there, content).packs
    for at in random.Random(5).sample(range(len(pack)), 30):
        spoilt = bytearray(pack)
        spoilt[at] ^= 1
        with pytest.raises(UsageError):
            there.pack_import().import_pack(bytes(spoilt))
    for length in (0, 7, 100, len(pack) - 1):
        with pytest.raises(UsageError):
            there.pack_import().import_pack(pack[:length])
    there.pack_import().import_pack(pack)
    assert there.fsck().problems == []


def test_a_record_must_be_true(there: Store) -> None:
    chunk = there.put_bytes(b"a chunk")
    there.flush()
    raw = parse_digest(chunk.digest) or b""
    other = blake3.blake3(b"something else").digest()
    for parts, said in (([(raw, 7)], "digest"), ([(other, 7)], "lacks its chunk")):
        file = pack_format.FileRecord(
            blake3.blake3(b"claimed").digest(), 7, 0, pack_format.pack_parts(parts)
        )
        with pytest.raises(UsageError, match=said):
            there.pack_import().import_pack(_pack(pack_format.Table([], [file])))
        assert not there.has(format_digest(file.digest))


def test_nothing_may_unfold_to_too_much(there: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_format, "MAX_CONTENT", 1000)
    data = bytes(2000)
    chunk = pack_format.Chunk(blake3.blake3(data).digest(), 2000, True)
    block = pack_format.Block(len(pack_format.MAGIC), 2000, 2000, pack_format.RAW, [chunk])
    with pytest.raises(UsageError, match="too much"):
        there.pack_import().import_pack(_pack(pack_format.Table([block], []), data))


def test_a_block_may_not_decompress_to_more_than_its_length(there: Store) -> None:
    bomb = zstandard.compress(bytes(1 << 30))  # some 30 kB
    chunk = pack_format.Chunk(blake3.blake3(bytes(1000)).digest(), 1000, True)
    block = pack_format.Block(len(pack_format.MAGIC), len(bomb), 1000, pack_format.ZSTD, [chunk])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError, match="wrong length"):
        there.pack_import().import_pack(_pack(pack_format.Table([block], []), bomb))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10  # KiB


def test_contents_that_are_short_to_tell_and_long_to_hash_are_refused(there: Store) -> None:
    chunk = there.put_bytes(bytes(range(256)) * 1000)
    there.flush()
    raw = parse_digest(chunk.digest) or b""
    other = blake3.blake3(b"claimed").digest()
    many = [(raw, chunk.size)] * (pack_format.MAX_REPEATED // chunk.size + 2)
    for parts in (
        [(pack_format.HOLE, 1 << 62)],
        [(pack_format.HOLE, pack_format.MAX_REPEATED + 1)],
        [(pack_format.HOLE, 1 << 61)] * 100,
        [(pack_format.HOLE, (1 << 64) - 1)] * 3,
        many,
    ):
        size = sum(length for _, length in parts) % (1 << 64)
        file = pack_format.FileRecord(other, size, 0, pack_format.pack_parts(parts))
        with pytest.raises(UsageError):
            there.pack_import().import_pack(_pack(pack_format.Table([], [file])))
    half = [(pack_format.HOLE, pack_format.MAX_REPEATED // 2 + 1)]
    two = [
        pack_format.FileRecord(bytes([n]) * 32, half[0][1], 0, pack_format.pack_parts(half))
        for n in (1, 2)
    ]
    with pytest.raises(UsageError, match="holes"):
        there.pack_import().import_pack(_pack(pack_format.Table([], two)))


def test_tables_are_validated(there: Store) -> None:
    start, data = len(pack_format.MAGIC), b"data"
    digest = blake3.blake3(data).digest()
    chunk = pack_format.Chunk(digest, 4, True)
    parts = pack_format.pack_parts([(digest, 4)])
    tables = [
        pack_format.Table(
            [pack_format.Block(start, 4, 4, pack_format.RAW, [chunk] * 2)], []
        ),  # more than the block
        pack_format.Table(
            [pack_format.Block(1 << 63, 4, 4, pack_format.RAW, [chunk])], []
        ),  # not in the pack
        pack_format.Table([pack_format.Block(start, 1 << 31, 4, pack_format.RAW, [chunk])], []),
        pack_format.Table([], [pack_format.FileRecord(digest, 5, 0, parts)]),  # another size
        pack_format.Table([], [pack_format.FileRecord(digest, 4, 7, parts)]),  # an unknown kind
    ]
    for table in tables:
        with pytest.raises(UsageError):
            there.pack_import().import_pack(_pack(table, data))
    empty = pack_format.Chunk(blake3.blake3().digest(), 0, True)
    many = pack_format.Block(start, 0, 0, pack_format.RAW, [empty] * (pack_format.MAX_CHUNKS + 1))
    with pytest.raises(UsageError, match="too many"):
        there.pack_import().import_pack(_pack(pack_format.Table([many], [])))


def test_cancelled_work_ends(there: Store) -> None:
    class Unwanted(Exception):
        pass

    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise Unwanted

    hole = 60 << 30
    file = pack_format.FileRecord(
        bytes(31) + b"x", hole, 0, pack_format.pack_parts([(pack_format.HOLE, hole)])
    )
    with pytest.raises(Unwanted):
        there.pack_import().import_pack(_pack(pack_format.Table([], [file])), check)
    there.put_bytes(b"more")
    there.flush()


def test_many_tiny_contents_go_in_several_packs(
    here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "PACK_CHUNKS", 10)
    contents = [here.put_bytes(b"%d" % n).digest for n in range(25)]
    assert len(send(here, there, *contents).packs) == 3


def test_what_is_on_its_way_is_not_swept(here: Store, there: Store, tmp_path: Path) -> None:
    content = here.put_bytes(b"on its way").digest
    send(here, there, content)
    with Store(tmp_path / "there") as other:
        assert other.gc(list).files == 0
        there.close()
        assert other.gc(list).files == 1


def _pack(table: pack_format.Table, data: bytes = b"") -> bytes:
    body = pack_format.MAGIC + data
    return body + pack_format.encode_table(table, position=len(body))
