"""Content through a remote: only what is missing travels, and what arrives is what was sent."""

import random
import threading
from pathlib import Path

import blake3
import pytest
from tests.unit.store.remotes.sample_remotes import Made, fill, opened, receive, send

from clew.errors import UsageError
from clew.store import Store
from clew.store.packs import chunking, pack_format
from clew.store.remotes.object_storage import DirectoryStorage, open_storage
from clew.store.types import parse_digest


def test_there_and_back(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    with Store(tmp_path / "there") as store, opened(url) as remote:
        assert receive(store, remote, made) > 0
        assert receive(store, remote, made) == 0
        for name, data in made.items():
            assert b"".join(store.read(name)) == data
        assert store.fsck().problems == []
    assert sum(path.stat().st_blocks * 512 for path in url.rglob("*.pack")) < 2 << 20  # no holes


def test_it_can_be_read_by_the_rules_of_the_page_alone(shared: tuple[Path, Made]) -> None:
    url, made = shared
    assert (url / "format").read_bytes() == b"clew-remote 1\n"
    chunks: dict[bytes, bytes] = {}
    records: dict[bytes, bytes] = {}
    for path in (url / "packs").iterdir():
        table = pack_format.read_table(path)
        tail = (url / "tables" / path.stem).read_bytes()
        assert path.read_bytes().endswith(tail)
        assert blake3.blake3(tail[:-56]).hexdigest()[:32] == path.stem
        for block in table.blocks:
            data = pack_format.read_block(
                path,
                position=block.position,
                stored=block.stored,
                length=block.length,
                codec=block.codec,
            )
            start = 0
            for chunk in block.chunks:
                chunks[chunk.digest] = data[start : start + chunk.length]
                start += chunk.length
        records |= {file.digest: file.parts for file in table.files}
    for name, expected in made.items():
        digest = bytes.fromhex(name.removeprefix("blake3:"))
        parts = pack_format.unpack_parts(records[digest]) if digest in records else [(digest, 0)]
        assert b"".join(chunks.get(part, bytes(length)) for part, length in parts) == expected


def test_what_is_there_is_not_sent_again(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    before = sorted(url.rglob("*"))
    with Store(tmp_path / "here") as store:
        with opened(url, make=True) as remote:
            assert send(store, remote, made) == 0
        big = max(made.values(), key=len)
        edited = big[:200_000] + b"one more" + big[200_000:]
        name = store.put_bytes(edited).digest
        store.flush()
        with opened(url, make=True) as remote:
            sent = send(store, remote, {name: edited})
        assert 0 < sent < len(big) // 2
    assert set(before) < set(url.rglob("*"))


def test_what_is_here_is_not_fetched_again(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    big = next(data for data in made.values() if len(data) == 700_000)
    with Store(tmp_path / "there") as store:
        store.put_bytes(big[:-1000])  # most chunks, but not this content
        store.flush()
        with opened(url) as remote:
            assert receive(store, remote, made) < 600_000
        assert all(b"".join(store.read(name)) == data for name, data in made.items())
        assert store.fsck().problems == []


def test_a_chunk_of_another_content_may_become_a_content(tmp_path: Path) -> None:
    """A chunk that is known only inside a larger content, here or there."""
    chance = random.Random(3)
    whole = chance.randbytes(400_000)
    first = whole[: chunking.find_cuts(whole)[0]]
    with Store(tmp_path / "here") as store, opened(tmp_path / "r", make=True) as remote:
        large = {store.put_bytes(whole).digest: whole}
        store.flush()
        send(store, remote, large)
        small = {store.put_bytes(first).digest: first}
        store.flush()
        with opened(tmp_path / "r", make=True) as again:
            assert send(store, again, small) < 1000
    for order in ((large, small), (small, large), (small,)):
        with (
            Store(tmp_path / f"there{len(order)}{next(iter(order[0]))[-6:]}") as there,
            opened(tmp_path / "r") as remote,
        ):
            for names in order:
                receive(there, remote, names)
                for name, data in names.items():
                    assert b"".join(there.read(name)) == data
            assert there.fsck().problems == []


def test_bytes_of_no_store_are_sent_and_read(tmp_path: Path) -> None:
    data = random.Random(5).randbytes(300_000)
    with Store(tmp_path / "here") as store:
        for given in (data, b"little", b""):
            with opened(tmp_path / "r", make=True) as remote:
                send(store, remote, {}, given)
            with opened(tmp_path / "r") as remote:
                receiving = store.start_download(remote, lambda done, total: None)
                assert receiving.read(blake3.blake3(given).digest(), most=1 << 30) == given
        assert store.fsck().checked == 0


def test_large_content_goes_in_several_packs_and_tells_how_far_it_is(tmp_path: Path) -> None:
    data = random.Random(6).randbytes(40 << 20)
    told: list[tuple[int, int]] = []
    with Store(tmp_path / "here") as store, opened(tmp_path / "r", make=True) as remote:
        name = store.put_bytes(data).digest
        store.flush()
        with store.start_upload(remote, lambda done, total: told.append((done, total))) as sending:
            sending.send(store.hold([name]))
            sending.finish()
    assert told[0] == (0, len(data))
    assert told[-1] == (len(data), len(data))
    assert len(list((tmp_path / "r" / "packs").iterdir())) == 3
    told.clear()
    with Store(tmp_path / "there") as store, opened(tmp_path / "r") as remote:
        receiving = store.start_download(remote, lambda done, total: told.append((done, total)))
        receiving.receive([parse_digest(name) or b""])
        assert b"".join(store.read(name)) == data
    assert (told[0], told[-1]) == ((0, len(data)), (len(data), len(data)))


def test_two_push_at_once(tmp_path: Path) -> None:
    with Store(tmp_path / "here") as store:
        made = fill(store)
    failed: list[BaseException] = []

    def push() -> None:
        try:
            with Store(tmp_path / "here") as store, opened(tmp_path / "r", make=True) as remote:
                send(store, remote, made)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=push) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with Store(tmp_path / "there") as store, opened(tmp_path / "r") as remote:
        receive(store, remote, made)
        assert all(b"".join(store.read(name)) == data for name, data in made.items())


def test_a_sweep_leaves_what_travels(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    for path in ("here", "there"):
        with Store(tmp_path / path) as store, opened(url) as remote:
            if path == "here":
                store.hold(made)
            else:
                receive(store, remote, made)
            with Store(tmp_path / path) as sweeper:
                assert sweeper.gc(()).files == 0
            assert all(b"".join(store.read(name)) == data for name, data in made.items())
        with Store(tmp_path / path) as sweeper:
            assert sweeper.gc(()).files == len(made)


def test_what_was_learnt_is_kept_and_may_be_lost(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    cache = tmp_path / "cache"
    for _ in range(2):
        with opened(url, cache=cache) as remote:
            assert all(remote.index.has(parse_digest(name) or b"") for name in made)
    (kept,) = (cache / "remotes").glob("*.db")
    (table,) = (url / "tables").iterdir()
    aside = table.read_bytes()
    table.write_bytes(b"")  # known already: not read again
    with opened(url, cache=cache) as remote:
        assert remote.damaged == []
    table.unlink()
    with opened(url, cache=cache) as remote:
        assert remote.index.packs() == []
    table.write_bytes(aside)
    kept.write_bytes(b"no database")
    with opened(url, cache=cache) as remote:
        assert len(remote.index.packs()) == 1


def test_places_are_named_by_path_or_url(tmp_path: Path) -> None:
    for url in (
        str(tmp_path / "a b"),
        f"file://{tmp_path}/a%20b",
        f"file://localhost{tmp_path}/a%20b",
    ):
        place = open_storage(url, {})
        assert isinstance(place, DirectoryStorage)
        place.make()
        assert (tmp_path / "a b" / "packs").is_dir()
        assert place.top_level_names() == {"packs", "tables", "executions"}
    for url in ("ftp://x/y", "s3://", "file://elsewhere/x", "https://x"):
        with pytest.raises(UsageError, match="not a remote"):
            open_storage(url, {})
