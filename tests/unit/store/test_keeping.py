"""fsck finds damage, gc takes only what nobody needs, the index comes back from the packs."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import Busy, Damaged, NoContent
from clew.store import Store, sweeping
from clew.store.cutting import cuts
from clew.store.index import Index
from clew.store.leases import Gate


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def packs(path: Path) -> list[Path]:
    return sorted((path / "packs").glob("*.pack"))


def fill(path: Path) -> dict[str, bytes]:
    """Small, middling and large contents, in two packs."""
    contents: dict[str, bytes] = {}
    with Store(path) as store:
        for part in range(2):
            texts = [b"text %d of %d\n" % (i, part) * (i + 1) for i in range(40)]
            for data in (*texts, noise(300_000, part), noise(5 << 20, part + 10)):
                contents[store.put_bytes(data).digest] = data
            store.flush()
    return contents


def check(path: Path, contents: dict[str, bytes]) -> None:
    with Store(path) as store:
        assert store.fsck().problems == []
        for digest, data in contents.items():
            assert b"".join(store.read(digest)) == data


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
        store.rebuild()
        assert store.fsck().problems == []


# -- the index


def test_a_lost_index_is_made_again(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    for file in (tmp_path / "s").glob("index.db*"):
        file.unlink()
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
        assert store.rebuild() == 2
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


def test_rebuilding_gives_the_same_index(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        before = sorted(store._index.digests())
        assert store.rebuild() == 2
        assert sorted(store._index.digests()) == before
    check(tmp_path / "s", contents)


# -- gc


def test_gc_keeps_what_is_live_and_takes_the_rest(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    live = dict(list(contents.items())[::2])
    with Store(tmp_path / "s") as store:
        planned = store.gc(live, dry_run=True)
        assert len(packs(tmp_path / "s")) == 2
        done = store.gc(live)
        assert planned.files == done.files == len(contents) - len(live)
        assert done.bytes > 0
        assert planned.bytes == pytest.approx(done.bytes, rel=0.05)
        for digest in contents:
            assert store.has(digest) == (digest in live)
        with pytest.raises(NoContent):
            store.read(next(digest for digest in contents if digest not in live))
    check(tmp_path / "s", live)


def test_gc_of_everything_leaves_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "s")
    with Store(tmp_path / "s") as store:
        assert store.gc([]).bytes > 10_000_000
        assert packs(tmp_path / "s") == []
        assert store.fsck() == (0, [])
        digest = store.put_bytes(b"life goes on").digest
    check(tmp_path / "s", {digest: b"life goes on"})


def test_a_shared_chunk_lives_as_long_as_one_of_its_files(tmp_path: Path) -> None:
    common = noise(6 << 20)
    with Store(tmp_path / "s") as store:
        first = store.put_bytes(common + b"first").digest
        second = store.put_bytes(common + b"second").digest
    with Store(tmp_path / "s") as store:
        store.gc([second])
        assert not store.has(first)
    check(tmp_path / "s", {second: common + b"second"})


def test_gc_takes_what_a_crash_left(tmp_path: Path) -> None:
    contents = fill(tmp_path / "s")
    folder = tmp_path / "s" / "packs"
    shutil.copy(packs(tmp_path / "s")[0], folder / "0123456789abcdef.pack")
    (folder / ".fedcba9876543210.part").write_bytes(b"half a pack")
    (tmp_path / "s" / "leases" / "killed.0123").write_bytes(bytes(32))
    with Store(tmp_path / "s") as store:
        assert store.fsck().problems == []
        store.gc(list(contents))
    assert len(list(folder.iterdir())) == 2
    assert list((tmp_path / "s" / "leases").iterdir()) == []
    check(tmp_path / "s", contents)


def test_many_small_packs_become_few(tmp_path: Path) -> None:
    contents = {}
    for i in range(70):
        with Store(tmp_path / "s") as store:
            contents[store.put_bytes(b"run %d" % i).digest] = b"run %d" % i
    assert len(packs(tmp_path / "s")) == 70
    with Store(tmp_path / "s") as store:
        store.gc(list(contents))
    assert len(packs(tmp_path / "s")) == 1
    check(tmp_path / "s", contents)


def test_a_lease_protects_what_was_put_and_what_was_found(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        found = store.put_bytes(b"was here").digest
        large = store.put_bytes(noise(5 << 20)).digest
    running = Store(tmp_path / "s", lease="e" * 32)
    running.put_bytes(b"was here")
    running.put_bytes(noise(5 << 20))
    new = running.put_bytes(b"is new").digest
    with Store(tmp_path / "s") as other:
        assert other.gc([]).files == 0
        running.flush()
        assert other.gc([]).files == 0
        for digest in (found, large, new):
            assert other.has(digest)
        running.close()
        assert other.gc([]).files == 3


def test_work_that_ends_during_a_sweep_keeps_its_content(tmp_path: Path) -> None:
    """It named its content after the sweep had asked for the names, and let go of its lease."""
    running = Store(tmp_path / "s", lease="running")
    digest = running.put_bytes(b"named too late").digest

    def names() -> list[str]:
        running.close()
        return []

    with Store(tmp_path / "s") as store:
        store.gc(names)
        assert store.has(digest)
        store.gc(list)
        assert not store.has(digest)


def test_work_that_is_settled_during_a_sweep_keeps_its_content(tmp_path: Path) -> None:
    """Its maker is dead; somebody named its content after the sweep had asked for the names."""
    dead = Store(tmp_path / "s", lease="dead")
    digest = dead.put_bytes(b"named too late").digest
    dead.flush()

    def names() -> list[str]:
        lapse(dead)
        with Store(tmp_path / "s") as other:
            other.lapse("dead")
        return []

    with Store(tmp_path / "s") as store:
        store.gc(names)
        assert store.has(digest)
        store.gc(list)
        assert not store.has(digest)


def test_the_lapsed_lease_of_nameless_work_goes_with_the_next(tmp_path: Path) -> None:
    for name in ("", "execution"):
        dead = Store(tmp_path / "s", lease=name)
        dead.put_bytes(b"put by one that was killed")
        lapse(dead)
    with Store(tmp_path / "s") as store:
        store.put_bytes(b"next")
    [left] = (tmp_path / "s" / "leases").iterdir()
    assert left.name.startswith("execution.")


def lapse(store: Store) -> None:
    """As the kernel does for a holder that was killed."""
    lease = store._writer._lease
    assert lease is not None
    os.close(lease._fd)
    lease._fd = -1


def test_what_is_put_while_packs_are_being_moved_stays(tmp_path: Path) -> None:
    """Both what is in the pack that is being moved and what was dropped from it."""
    contents = fill(tmp_path / "s")
    live, gone = list(contents)[:3], list(contents)[20]
    running = Store(tmp_path / "s", lease="running")
    with Store(tmp_path / "s") as store:
        sweep = sweeping.Sweep(store.path, store._index, store._gate, store._reader)
        copy = sweep._copy

        def copying(moving: set[int]) -> set[bytes]:
            moved = copy(moving)
            assert moved
            assert running.put_bytes(contents[live[0]]).new_bytes == 0
            assert running.put_bytes(contents[gone]).new_bytes > 0
            running.flush()
            return moved

        sweep._copy = copying  # type: ignore[method-assign]
        sweep.run(live, dry_run=False)
        assert all(store.has(digest) for digest in (*live, gone))
        assert store.gc([]).files == 2
        assert store.has(live[0])
        assert store.has(gone)
    running.close()
    check(tmp_path / "s", {digest: contents[digest] for digest in (live[0], gone)})


def test_a_pack_that_comes_while_the_sweep_weighs_is_let_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    with Store(path) as store, Store(path) as other:
        kept = store.put_bytes(b"named").digest
        store.flush()
        coming = [other.put_bytes(data).digest for data in (b"on its way", noise(5 << 20))]
        shares = Index.shares

        def flushing(index: Index) -> Iterator[tuple[bytes, int, int, int, int]]:
            other.flush()
            return shares(index)

        monkeypatch.setattr(Index, "shares", flushing)
        assert store.gc([kept]).files == 0
        assert all(store.has(digest) for digest in (kept, *coming))
        assert store.fsck().problems == []


def test_a_part_put_whole_by_another_writer_stays_a_content(tmp_path: Path) -> None:
    data = noise(3 << 20)
    part = data[: cuts(data)[0]]
    first, second = Store(tmp_path / "s"), Store(tmp_path / "s")
    whole, piece = first.put_bytes(data).digest, second.put_bytes(part).digest
    first.flush()
    second.close()
    first.close()
    check(tmp_path / "s", {whole: data, piece: part})
    with Store(tmp_path / "s") as store:
        store.gc([piece])
        assert not store.has(whole)
        store.rebuild()
    check(tmp_path / "s", {piece: part})


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        gate = Gate(tmp_path / "s" / "sweep")
        with gate.exclusive(), pytest.raises(Busy):
            store.gc([])
        gate.close()
        store.gc([])


def test_a_sweep_is_over_when_it_ends_though_a_child_was_forked_meanwhile(tmp_path: Path) -> None:
    """Its descriptors are the child's, too, until that executes something."""
    held, release = os.pipe()
    with Store(tmp_path) as store:

        def live() -> list[str]:
            if not os.fork():
                os.close(release)
                os.read(held, 1)
                os._exit(0)
            return []

        store.gc(live)
        store.gc([])
    os.close(release)
    os.close(held)
    os.wait()


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
            store.give_up(digest)
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
        place = store._index.place(store._reader.parts(store._stored(one))[0][0])
        assert place is not None
        with (tmp_path / "s/packs" / place.pack).open("r+b") as pack:
            pack.seek(place.position)
            pack.write(bytes(100))
        store.give_up(one)
        assert [store.has(digest) for digest in (one, other, alone)] == [False, False, True]
        store.give_up(other)  # nothing is left to give up
        for tail in (b"1", b"2"):
            store.put_bytes(shared + tail)
        assert b"".join(store.read(one)) == shared + b"1"
        assert b"".join(store.read(other)) == shared + b"2"


def readable(store: Store, digest: str) -> bool:
    try:
        return all(True for _ in store.read(digest))
    except Damaged:
        return False
