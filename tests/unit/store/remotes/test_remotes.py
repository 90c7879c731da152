"""Content through a remote: only what is missing travels, and what arrives is what was sent."""

from __future__ import annotations

import os
import random
import re
import resource
import threading
from collections.abc import Callable
from pathlib import Path

import blake3
import pytest
import zstandard

from clew.errors import ClewError, Damaged, NoContent, NotAllowed, NotFound, UsageError
from clew.store import Store
from clew.store.packs import pack_format
from clew.store.remotes import Remote, document_name, open_remote
from clew.store.remotes.object_storage import DirectoryStorage, open_storage
from clew.store.types import parse_digest

Made = dict[str, bytes]


def opened(url: Path | str, **more: object) -> Remote:
    return open_remote(str(url), {}, **more)  # type: ignore[arg-type]


def fill(store: Store, seed: int = 1) -> Made:
    """Contents of every kind: empty, small, of many chunks, with holes; by name."""
    chance = random.Random(seed)
    contents = [b"", b"small", b"x" * 70_000, chance.randbytes(700_000), chance.randbytes(3_000)]
    made = {store.put_bytes(data).digest: data for data in contents}
    hole = store.path.parent / f"hole-{seed}"
    with open(hole, "wb") as file:
        file.write(chance.randbytes(200_000))
        file.seek(30 << 20)
        file.write(b"end")
    made[store.put_file(os.fsencode(hole)).digest] = hole.read_bytes()
    store.flush()
    return made


def send(store: Store, remote: Remote, names: Made, *data: bytes) -> int:
    with store.start_upload(remote, lambda done, total: None) as sending:
        sending.send(store.hold(names))
        for given in data:
            sending.send_bytes(given)
        sending.finish()
        return sending.bytes


def receive(store: Store, remote: Remote, names: Made) -> int:
    receiving = store.start_download(remote, lambda done, total: None)
    receiving.receive(filter(None, map(parse_digest, names)))
    return receiving.bytes


@pytest.fixture
def shared(tmp_path: Path) -> tuple[Path, Made]:
    """A remote with some contents."""
    with Store(tmp_path / "here") as store, opened(tmp_path / "r", make=True) as remote:
        made = fill(store)
        send(store, remote, made)
    return tmp_path / "r", made


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


def test_a_part_of_others_may_become_a_content(tmp_path: Path) -> None:
    """A chunk that is known only inside a larger content, here or there."""
    chance = random.Random(3)
    whole = chance.randbytes(400_000)
    from clew.store.packs import chunking

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


# -- what is wrong with a remote


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def one(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit of a block": lambda url: flip(one(url / "packs"), 1000),
    "a cut pack": lambda url: os.truncate(one(url / "packs"), 5000),
    "a lost pack": lambda url: one(url / "packs").unlink(),
    "a bit of a table": lambda url: flip(one(url / "tables"), 100),
    "a cut table": lambda url: os.truncate(one(url / "tables"), 30),
    "an empty table": lambda url: os.truncate(one(url / "tables"), 0),
    "a lost table": lambda url: one(url / "tables").unlink(),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_found_and_a_push_repairs_it(
    tmp_path: Path, shared: tuple[Path, Made], how: str
) -> None:
    url, made = shared
    DAMAGE[how](url)
    with Store(tmp_path / "there") as store:
        with opened(url) as remote, pytest.raises(Damaged) as told:
            receive(store, remote, made)
        assert str(url) in told.value.message
        assert "clew push" in told.value.hint
    with Store(tmp_path / "there") as store:
        assert store.fsck().problems == []
    if (delete := re.match(r"delete (\S+) there, then ", told.value.hint)) is not None:
        (url / delete[1]).unlink()
    with Store(tmp_path / "here") as store, opened(url, make=True) as remote:
        send(store, remote, made)
    with Store(tmp_path / "there") as store, opened(url) as remote:
        receive(store, remote, made)
        assert all(b"".join(store.read(name)) == data for name, data in made.items())


def test_a_record_that_lies_names_nothing(tmp_path: Path) -> None:
    """Chunks that are whole, put together to something that does not have the digest it says."""
    data = random.Random(9).randbytes(300_000)
    lie = blake3.blake3(b"another").digest()
    with (
        Store(tmp_path / "here") as store,
        opened(tmp_path / "r", make=True) as remote,
        store.start_upload(remote, lambda done, total: None) as sending,
    ):
        sending.send_bytes(data)
        true = sending._blocks[-1].files[-1]
        sending._add_record(true._replace(digest=lie))
        sending.finish()
    with Store(tmp_path / "there") as store, opened(tmp_path / "r") as remote:
        receiving = store.start_download(remote, lambda done, total: None)
        with pytest.raises(Damaged, match="does not have that digest"):
            receiving.read(lie, most=1 << 30)
        with pytest.raises(Damaged, match="does not have that digest"):
            receiving.receive([lie])
        assert not store.has(f"blake3:{lie.hex()}")


def test_a_content_that_is_not_here_is_not_pushed(tmp_path: Path) -> None:
    with Store(tmp_path / "here") as store, pytest.raises(NoContent):
        store.hold(["blake3:" + "0" * 64])


def test_documents_are_verified(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, _ = shared
    uid = "a" * 32
    with opened(url) as remote:
        remote.publish(uid, b"{}")
        (url / "executions" / "README").write_text("not a document")
        name = document_name(uid, b"{}")
        assert remote.documents() == [name]
        assert remote.read([name]) == {name: b"{}"}
        (url / "executions" / name).write_bytes(b"[]")
        assert remote.read([name]) == {}


def test_what_was_learnt_is_kept_and_may_be_lost(tmp_path: Path, shared: tuple[Path, Made]) -> None:
    url, made = shared
    cache = tmp_path / "cache"
    for _ in range(2):
        with opened(url, cache=cache) as remote:
            assert all(remote.index.has(parse_digest(name) or b"") for name in made)
    (kept,) = (cache / "remotes").glob("*.db")
    table = one(url / "tables")
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


def test_a_directory_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "home" / "letters").mkdir(parents=True)
    with pytest.raises(NotAllowed, match="not a remote and not empty"):
        opened(tmp_path / "home", make=True)
    assert os.listdir(tmp_path / "home") == ["letters"]
    with Store(tmp_path / "store"):
        pass
    with pytest.raises(ClewError, match="another format: clew-store 1"):
        opened(tmp_path / "store", make=True)
    with pytest.raises(NotFound, match="no remote"):
        opened(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_what_a_killed_push_was_writing_is_removed(tmp_path: Path) -> None:
    opened(tmp_path / "r", make=True).close()
    left = tmp_path / "r" / "packs" / ".0123.part"
    left.write_bytes(b"half")
    with opened(tmp_path / "r") as remote:
        assert remote.storage.names("packs") == []
        assert left.exists()
    opened(tmp_path / "r", make=True).close()
    assert not left.exists()


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


def plant(remote: Path, table: pack_format.Table, data: bytes = b"") -> str:
    """Put a pack and its table into a remote, as somebody might who means no good."""
    pack = pack_format.MAGIC + data
    tail = pack_format.encode_table(table, position=len(pack))
    name = pack_format.tail_name(tail)
    (remote / "packs" / f"{name}.pack").write_bytes(pack + tail)
    (remote / "tables" / name).write_bytes(tail)
    return name


def test_a_remote_that_claims_too_much_is_not_believed(
    tmp_path: Path, shared: tuple[Path, Made]
) -> None:
    remote, made = shared
    start, digest = len(pack_format.MAGIC), blake3.blake3(b"x").digest()
    chunk = pack_format.Chunk(digest, 1, True)
    bomb = zstandard.compress(bytes(1 << 30))
    unfolds = pack_format.Block(start, len(bomb), 1, pack_format.ZSTD, [chunk])
    named = plant(remote, pack_format.Table([unfolds], []), bomb)
    far = [
        pack_format.Block((1 << 64) - 9, 4, 4, pack_format.RAW, []),
        pack_format.Block(start, 4, 1 << 31, 1, []),
    ]
    damaged = [plant(remote, pack_format.Table([block], [])) for block in far]
    wide = [
        pack_format.Block(start, 0, pack_format.MAX_CONTENT // 2 + n, pack_format.ZSTD, [])
        for n in range(3)
    ]
    damaged.append(plant(remote, pack_format.Table(wide, [])))
    huge = pack_format.FileRecord(
        digest, 1 << 63, pack_format.FILE, pack_format.pack_parts([(pack_format.HOLE, 1 << 63)])
    )
    damaged.append(plant(remote, pack_format.Table([], [huge])))
    hole = pack_format.pack_parts([(pack_format.HOLE, 1 << 62)])
    plant(
        remote,
        pack_format.Table(
            [], [pack_format.FileRecord(bytes([1]) * 32, 1 << 62, pack_format.FILE, hole)]
        ),
    )
    for directory, name in (("packs", "../../x.pack"), ("tables", "..%2f..%2fx"), ("packs", "x")):
        (remote / directory / name.replace("/", "_")).write_bytes(b"")
    os.mkfifo(remote / "tables" / ("0" * 32))
    (remote / "packs" / f"{'0' * 32}.pack").write_bytes(b"")
    with open(remote / "tables" / ("1" * 32), "wb") as file:
        file.truncate(1 << 40)
    (remote / "packs" / f"{'1' * 32}.pack").write_bytes(b"")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Store(tmp_path / "there") as store, opened(remote) as found:
        assert set(found.damaged) == {*damaged, "0" * 32, "1" * 32}
        receive(store, found, made)
        receiving = store.start_download(found, lambda done, total: None)
        with pytest.raises(Damaged, match="holes"):
            receiving.receive([bytes([1]) * 32])
        with pytest.raises(Damaged, match="more than"):
            receiving.read(bytes([1]) * 32, most=1 << 30)
        with pytest.raises(Damaged, match=named):
            receiving.receive([digest])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10  # KiB
    with open(remote / "format", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Damaged):
        opened(remote)
