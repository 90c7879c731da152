"""Remotes that are damaged, hostile or not remotes: nothing wrong is taken from them."""

import os
import random
import re
import resource
from collections.abc import Callable
from pathlib import Path

import blake3
import pytest
import zstandard
from tests.unit.store.remotes.sample_remotes import Made, opened, receive, send

from clew.errors import ClewError, Damaged, NoContent, NotAllowed, NotFound
from clew.store import Store
from clew.store.packs import pack_format
from clew.store.remotes import document_name


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
