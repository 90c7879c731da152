"""gc takes only what nobody needs, whatever goes on beside it."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.processes import as_root, mounted
from tests.unit.store.sample_stores import check, fill, noise, packs, remove_index

from clew.errors import Busy, NoContent
from clew.store import Store, garbage_collector
from clew.store.index import Index
from clew.store.leases import StoreLock
from clew.store.packs.chunking import find_cuts


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


@as_root
def test_without_room_to_copy_dead_blocks_are_freed_in_place(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=24m", "none"):
        here = tmp_path / "disk" / "s"
        live, dead, zeros = noise(3 << 20, seed=1), noise(9 << 20, seed=2), bytes(10)
        with Store(here) as store:
            digest = store.put_bytes(live).digest
            store.put_bytes(dead)
        with Store(here) as store:
            empty = store.put_bytes(zeros).digest  # a block that reads as zeros by itself
        (pack,) = [path for path in packs(here) if path.stat().st_size > 12 << 20]
        with Store(here) as store:
            room = shutil.disk_usage(here).free - (1 << 20)  # less than has to be copied
            with open(tmp_path / "disk" / "ballast", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, room)
            freed = store.gc([digest, empty])
            assert freed.files == 1
            assert 8 << 20 < freed.bytes <= 9 << 20
            assert pack.exists()
            assert shutil.disk_usage(here).free > 9 << 20
            check_now = {digest: live, empty: zeros}
            assert {d: b"".join(store.read(d)) for d in check_now} == check_now
        check(here, check_now)
        (tmp_path / "disk" / "ballast").unlink()
        remove_index(here)  # the freed blocks are in the pack's table, not in the index
        check(here, check_now)
        with Store(here) as store:  # with room it is copied
            store.gc([digest, empty])
        assert not pack.exists()
        check(here, check_now)


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
    directory = tmp_path / "s" / "packs"
    shutil.copy(packs(tmp_path / "s")[0], directory / "0123456789abcdef.pack")
    (directory / ".fedcba9876543210.part").write_bytes(b"half a pack")
    (tmp_path / "s" / "leases" / "killed.0123").write_bytes(bytes(32))
    with Store(tmp_path / "s") as store:
        assert store.fsck().problems == []
        store.gc(list(contents))
    assert len(list(directory.iterdir())) == 2
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


def assert_only_this_sweep_keeps(
    digest: str, directory: Path, names: Callable[[], list[str]]
) -> None:
    with Store(directory) as store:
        store.gc(names)
        assert store.has(digest)
        store.gc(list)
        assert not store.has(digest)


def test_work_that_ends_during_a_sweep_keeps_its_content(tmp_path: Path) -> None:
    """It named its content after the sweep had asked for the names, and let go of its lease."""
    running = Store(tmp_path / "s", lease="running")
    digest = running.put_bytes(b"named too late").digest

    def names() -> list[str]:
        running.close()
        return []

    assert_only_this_sweep_keeps(digest, tmp_path / "s", names)


def test_work_that_is_settled_during_a_sweep_keeps_its_content(tmp_path: Path) -> None:
    """Its maker is dead; somebody named its content after the sweep had asked for the names."""
    dead = Store(tmp_path / "s", lease="dead")
    digest = dead.put_bytes(b"named too late").digest
    dead.flush()

    def names() -> list[str]:
        lapse(dead)
        with Store(tmp_path / "s") as other:
            other.drop_leases("dead")
        return []

    assert_only_this_sweep_keeps(digest, tmp_path / "s", names)


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
        sweep = garbage_collector.Sweep(store.path, store._index, store._store_lock, store._reader)
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
    part = data[: find_cuts(data)[0]]
    first, second = Store(tmp_path / "s"), Store(tmp_path / "s")
    whole, piece = first.put_bytes(data).digest, second.put_bytes(part).digest
    first.flush()
    second.close()
    first.close()
    check(tmp_path / "s", {whole: data, piece: part})
    with Store(tmp_path / "s") as store:
        store.gc([piece])
        assert not store.has(whole)
    remove_index(tmp_path / "s")
    check(tmp_path / "s", {piece: part})


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        gate = StoreLock(tmp_path / "s" / "sweep")
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
