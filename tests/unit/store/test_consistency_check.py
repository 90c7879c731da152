"""fsck finds damage, the index comes back from the packs, what is damaged can be put again."""

import os
import random
from pathlib import Path

import pytest
from tests.unit.store.sample_stores import check, fill, noise, packs, remove_index

from clew.errors import Damaged
from clew.store import Store
from clew.store.index import Index

# -- fsck


def test_a_whole_store_has_no_problems(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        report = store.fsck()
    assert report.problems == []
    assert report.checked > len(contents)


@pytest.mark.parametrize("seed", range(12))
def test_any_flipped_byte_is_found(tmp_path: Path, seed: int) -> None:
    fill(tmp_path / "s")
    source = random.Random(seed)
    pack = source.choice(packs(tmp_path / "s"))
    data = bytearray(pack.read_bytes())
    tail = seed % 2 == 0  # the table and the footer are small: aim at them every other time
    at = len(data) - 1 - source.randrange(3000) if tail else source.randrange(len(data))
    data[at] ^= 1 << source.randrange(8)
    pack.write_bytes(data)
    with Store(tmp_path / "s") as store:
        problems = store.fsck().problems
    assert any(problem.where == pack.name for problem in problems)


@pytest.mark.parametrize("keep", [0, 7, 8, 1000, -1])
def test_a_truncated_pack_is_found(tmp_path: Path, keep: int) -> None:
    fill(tmp_path / "s")
    pack = packs(tmp_path / "s")[0]
    os.truncate(pack, keep if keep >= 0 else pack.stat().st_size + keep)
    with Store(tmp_path / "s") as store:
        assert any(problem.where == pack.name for problem in store.fsck().problems)


def test_a_missing_pack_is_found_and_said_when_read(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    packs(tmp_path / "s")[0].unlink()
    with Store(tmp_path / "s") as store:
        assert store.fsck().problems
        lost = 0
        for digest, data in contents.items():
            try:
                assert b"".join(store.read(digest)) == data
            except Damaged:
                lost += 1
        assert 0 < lost < len(contents)


def test_index_entries_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    fill(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        with store._index.writing() as db:
            db.execute("DELETE FROM blocks WHERE id = (SELECT min(id) FROM blocks)")
        assert [problem.where for problem in store.fsck().problems][:1] == ["index.db"]
    remove_index(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        assert store.fsck().problems == []


def test_what_is_stored_meanwhile_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process stores content after the check has listed the packs."""
    fill(tmp_path / "s")
    packs_of = Index.packs

    def store_another(index: Index) -> list[tuple[int, str, int]]:
        listed = packs_of(index)
        with Store(tmp_path / "s") as other:
            other.put_bytes(noise(5000 + len(packs(tmp_path / "s"))))
        return listed

    monkeypatch.setattr(Index, "packs", store_another)
    with Store(tmp_path / "s") as store:
        assert store.fsck().problems == []
    assert len(packs(tmp_path / "s")) > 2


# -- the index


def test_a_lost_index_is_made_again(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        before = sorted(store._index.digests())
    remove_index(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        assert sorted(store._index.digests()) == before
    check(tmp_path / "s", contents)


def test_a_damaged_index_is_said_and_made_again(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    index = tmp_path / "s" / "index.db"
    index.write_bytes(b"no database at all, but long enough" * 1000)
    with Store(tmp_path / "s") as store:
        for digest, data in contents.items():  # the packs are whole, so it can be read
            assert b"".join(store.read(digest)) == data
        with pytest.raises(Damaged, match=r"index\.db"):
            store.put_bytes(b"new")
        assert [problem.where for problem in store.fsck().problems] == ["index.db"]
    remove_index(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        contents[store.put_bytes(b"new").digest] = b"new"
        assert store.fsck().problems == []
    check(tmp_path / "s", contents)


def test_a_scribbled_index_is_found(tmp_path: Path) -> None:
    fill(tmp_path / "s")
    index = tmp_path / "s" / "index.db"
    data = bytearray(index.read_bytes())
    for page in range(4096, len(data), 4096):
        data[page : page + 64] = b"\xee" * 64
    index.write_bytes(data)
    with Store(tmp_path / "s") as store:
        assert "index.db" in {problem.where for problem in store.fsck().problems}


# -- giving up


def test_what_is_damaged_can_be_put_again(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    first = packs(tmp_path / "s")[0]
    whole = first.read_bytes()
    first.write_bytes(whole[:100] + bytes(len(whole) - 100))
    with Store(tmp_path / "s") as store:
        damaged = [digest for digest in contents if not readable(store, digest)]
        assert len(damaged) > 10
        for digest in damaged:
            store.forget_damaged(digest)
            assert not store.has(digest)
        for digest in damaged:
            assert store.put_bytes(contents[digest]).digest == digest
        store.flush()
        assert all(readable(store, digest) for digest in contents)
    with Store(tmp_path / "s") as store:
        assert all(b"".join(store.read(digest)) == data for digest, data in contents.items())


def test_what_shares_a_damaged_part_is_given_up_with_it(tmp_path: Path) -> None:
    shared = noise(2 << 20)
    with Store(tmp_path / "s") as store:
        one, other = (store.put_bytes(shared + tail).digest for tail in (b"1", b"2"))
        alone = store.put_bytes(b"by itself").digest
        store.flush()
        place = store._index.locate(store._reader.parts(store._stored(one))[0][0])
        assert place is not None
        with (tmp_path / "s/packs" / place.pack).open("r+b") as pack:
            pack.seek(place.position)
            pack.write(bytes(100))
        store.forget_damaged(one)
        assert [store.has(digest) for digest in (one, other, alone)] == [False, False, True]
        store.forget_damaged(other)  # nothing is left to give up
        for tail in (b"1", b"2"):
            store.put_bytes(shared + tail)
        assert b"".join(store.read(one)) == shared + b"1"
        assert b"".join(store.read(other)) == shared + b"2"


def readable(store: Store, digest: str) -> bool:
    try:
        return all(True for _ in store.read(digest))
    except Damaged:
        return False
