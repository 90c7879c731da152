"""Putting content in and getting it back."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import blake3
import pytest

from clew.errors import ClewError, NoContent, NotAllowed, NotFound
from clew.store import Changed, Signature, Store
from clew.store.errors import TooSparse
from clew.store.file_input import RACY_NS, SMALL_FILE
from clew.store.index import Index
from clew.store.packs import pack_format


def name_of(data: bytes) -> str:
    return "blake3:" + blake3.blake3(data).hexdigest()


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def old(path: Path) -> Path:
    """Wait until the file's times are old enough for its digest to be remembered."""
    while time.time_ns() <= path.stat().st_ctime_ns + RACY_NS:
        time.sleep(0.05)  # the clock itself is what is awaited
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store") as opened:
        yield opened


SIZES = [
    0,
    1,
    63,
    4096,
    64 << 10,
    (64 << 10) + 1,
    1 << 20,
    SMALL_FILE,
    SMALL_FILE + 1,
    (20 << 20) + 7,
]


@pytest.mark.parametrize("size", SIZES)
def test_a_file_is_stored_under_its_digest_and_read_back(
    store: Store, tmp_path: Path, size: int
) -> None:
    data = noise(size)
    path = tmp_path / "file"
    path.write_bytes(data)
    stored = store.put_file(os.fsencode(path))
    assert (stored.digest, stored.size) == (name_of(data), size)
    assert b"".join(store.read(stored.digest)) == data
    assert store.size(stored.digest) == size
    assert store.has(stored.digest)


@pytest.mark.parametrize("size", SIZES)
def test_file_stream_and_bytes_are_the_same_content(
    store: Store, tmp_path: Path, size: int
) -> None:
    data = noise(size)
    path = tmp_path / "file"
    path.write_bytes(data)
    first = store.put_file(os.fsencode(path))
    store.flush()
    added = store.added
    assert store.put_bytes(data).digest == first.digest
    again = store.put_stream(data[i : i + 99_999] for i in range(0, size, 99_999))
    assert (again.digest, again.new_bytes) == (first.digest, 0)
    store.flush()
    assert store.added == added


def test_content_survives_closing(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        digests = [store.put_bytes(b"%d" % i * i).digest for i in range(300)]
    with Store(tmp_path / "s") as store:
        for i, digest in enumerate(digests):
            assert b"".join(store.read(digest)) == b"%d" % i * i


def test_what_is_new_is_counted_after_compression_and_deduplication(store: Store) -> None:
    text = b"the same line again and again\n" * 10_000
    first, second = store.put_bytes(text), store.put_bytes(text)
    store.flush()
    assert 0 < first.new_bytes < len(text) // 10
    assert second.new_bytes == 0
    contents = [store.put_bytes(noise(5000, seed) + text) for seed in range(50)]
    before = store.added
    store.flush()
    total = sum(content.new_bytes for content in contents)
    assert total == pytest.approx(store.added - before, rel=0.05)


def test_noise_is_stored_as_it_is(store: Store) -> None:
    stored = store.put_bytes(noise(3 << 20))
    store.flush()
    assert stored.new_bytes == stored.size
    assert store.added < stored.size * 1.001


def test_keep_false_stores_nothing(store: Store, tmp_path: Path) -> None:
    for size in (10, SMALL_FILE + 10):
        path = tmp_path / str(size)
        path.write_bytes(noise(size))
        stored = store.put_file(os.fsencode(path), keep=False)
        assert stored.digest == name_of(noise(size))
        assert not store.has(stored.digest)
    store.flush()
    assert store.added == 0
    with pytest.raises(NoContent):
        store.read(stored.digest)


def test_a_chunk_is_not_a_content_until_it_is_stored(store: Store) -> None:
    data = noise(3 << 20)
    whole = store.put_bytes(data)
    store.flush()
    from clew.store.packs.chunking import find_cuts

    part = data[: find_cuts(data)[0]]
    assert not store.has(name_of(part))
    assert store.put_bytes(part).new_bytes == 0
    assert b"".join(store.read(name_of(part))) == part
    assert b"".join(store.read(whole.digest)) == data


# -- believing


@pytest.mark.parametrize("size", [10, SMALL_FILE + 10])
def test_a_file_that_is_not_what_was_expected_is_refused(
    store: Store, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(noise(size))
    expected = Signature.of(path.stat())
    assert store.put_file(os.fsencode(path), expect=expected).size == size
    os.utime(path, ns=(0, 0))
    with pytest.raises(Changed):
        store.put_file(os.fsencode(path), expect=expected)
    with pytest.raises(Changed):
        store.put_file(os.fsencode(path), expect=expected, keep=False)


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_that_changes_while_it_is_read_is_refused(
    store: Store, tmp_path: Path, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes between two reads of the file, at a moment the test chooses."""
    path = tmp_path / "file"
    path.write_bytes(noise(24 << 20))
    expected = Signature.of(old(path).stat())
    pread, reads = os.pread, 0

    def changing(fd: int, length: int, offset: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == 2:
            with open(path, "r+b") as file:
                file.write(b"other bytes")
        return pread(fd, length, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", changing)
        with pytest.raises(Changed):
            store.put_file(os.fsencode(path), expect=expected, keep=keep)
    assert reads >= 2
    assert not store.has(name_of(path.read_bytes()))
    assert not store.has(name_of(noise(24 << 20)))
    assert store.put_file(os.fsencode(path)).digest == name_of(path.read_bytes())


def test_an_old_file_is_not_read_again(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"once")
    expected = Signature.of(old(path).stat())
    stored = store.put_file(os.fsencode(path), expect=expected)
    store.flush()
    path.chmod(0)  # changes ctime: another signature
    status = Signature.of(path.stat())
    known, unknown = store.recall([expected, status])
    assert known is not None
    assert known.digest == stored.digest
    assert unknown is None


def test_a_file_changed_just_now_is_read_again(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    store.put_file(os.fsencode(path))
    store.flush()
    assert store.recall([Signature.of(path.stat())]) == [None]


def test_a_remembered_file_that_is_no_longer_stored_is_stored_again(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    old(path)
    digest = store.put_file(os.fsencode(path), keep=False).digest
    store.flush()
    assert not store.has(digest)
    store.put_file(os.fsencode(path))
    assert b"".join(store.read(digest)) == b"content"


def test_inode_numbers_may_be_of_any_size(tmp_path: Path) -> None:
    """Some file systems number theirs beyond what a signed number holds."""
    files = [Signature(dev, ino, 1, 2, 3) for dev in (1, 2) for ino in (5, (1 << 63) - 1, 1 << 63)]
    files.append(Signature(2, (1 << 64) - 1, 1, 2, 3))
    digests = [bytes([i]) * 32 for i in range(len(files))]
    index = Index(tmp_path / "index.db")
    with index.writing() as db:
        index.remember(db, zip(files, digests, strict=True))
    found = index.remembered([*files, files[-1]._replace(ctime=4), files[0]._replace(ino=6)])
    assert [row and row[0] for row in found] == [*digests, None, None]
    index.close()


def test_what_cannot_be_stored_is_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        store.put_file(os.fsencode(tmp_path / "absent"))
    with pytest.raises(ClewError):
        store.put_file(os.fsencode(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ClewError):
        store.put_file(os.fsencode(tmp_path / "pipe"))
    with pytest.raises(Changed):  # says it is empty, and is not
        store.put_file(b"/proc/self/status")
    assert store.put_bytes(b"still working").size == 13


def test_any_path_may_be_stored(store: Store, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/a b \xff\xfe \n"
    with open(path, "wb") as file:
        file.write(b"odd")
    assert b"".join(store.read(store.put_file(path).digest)) == b"odd"


# -- names


def test_nothing_is_stored_for_an_invalid_digest(store: Store) -> None:
    for name in ("", "blake3:", "blake3:" + "g" * 64, "sha256:" + "0" * 64):
        assert not store.has(name)
        with pytest.raises(NoContent):
            store.read(name)


# -- restoring


def test_restore_sets_mode_and_time_and_replaces_whole(store: Store, tmp_path: Path) -> None:
    digest = store.put_bytes(b"content").digest
    to = tmp_path / "out"
    to.write_bytes(b"what was there")
    store.restore(digest, to, mode=0o640, mtime=1_234_567_890_123_456_789)
    assert to.read_bytes() == b"content"
    assert to.stat().st_mode & 0o7777 == 0o640
    assert to.stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "store"] == ["out"]


def test_a_failed_restore_leaves_what_was_there(store: Store, tmp_path: Path) -> None:
    digest = store.put_bytes(noise(2 << 20)).digest
    store.flush()
    (pack,) = (tmp_path / "store" / "packs").glob("*.pack")
    data = bytearray(pack.read_bytes())
    data[1 << 20] ^= 1
    pack.write_bytes(data)
    to = tmp_path / "out"
    to.write_bytes(b"what was there")
    with pytest.raises(ClewError) as caught:
        store.restore(digest, to)
    assert caught.value.code == "damaged"
    assert to.read_bytes() == b"what was there"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "store"] == ["out"]
    with pytest.raises(NotFound):
        store.restore(store.put_bytes(b"x").digest, tmp_path / "no" / "such" / "folder")


def test_holes_stay_holes(store: Store, tmp_path: Path) -> None:
    path, to = tmp_path / "sparse", tmp_path / "out"
    with open(path, "wb") as file:
        file.seek(50 << 20)
        file.write(noise(100_000))
        file.seek(40 << 20, os.SEEK_CUR)
        file.write(b"end")
        file.truncate(200 << 20)
    stored = store.put_file(os.fsencode(path))
    store.flush()
    assert stored.digest == name_of(path.read_bytes())
    assert store.added < 200_000
    store.restore(stored.digest, to)
    assert to.stat().st_size == 200 << 20
    assert to.stat().st_blocks * 512 < 2 << 20
    assert name_of(to.read_bytes()) == stored.digest
    assert name_of(b"".join(store.read(stored.digest))) == stored.digest


@pytest.mark.parametrize("keep", [True, False])
def test_a_file_with_too_many_holes_is_refused(store: Store, tmp_path: Path, keep: bool) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"begin")
        file.seek(2 << 40)
        file.write(b"middle")
        file.truncate(4 << 40)
    with pytest.raises(TooSparse, match="sparse: at most 64 GiB of holes"):
        store.put_file(os.fsencode(path), keep=keep)
    assert store.put_bytes(b"other").digest == name_of(b"other")


def test_the_holes_of_all_files_count_together(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack_format, "MAX_REPEATED", 64 << 20)
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        with path.open("wb") as file:
            file.truncate(40 << 20)
    store.put_file(os.fsencode(paths[0]))
    refused, other = store.put_files([os.fsencode(path) for path in paths[1:]])
    assert isinstance(refused, TooSparse) and isinstance(other, TooSparse)
    store.flush()
    assert store.put_file(os.fsencode(paths[1])).size == 40 << 20


def test_written_zeros_are_restored_as_holes(store: Store, tmp_path: Path) -> None:
    data = b"head" + bytes(9 << 20) + b"tail"
    digest = store.put_bytes(data).digest
    store.restore(digest, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    assert (tmp_path / "out").stat().st_blocks * 512 < 1 << 20


# -- refusing


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "s").close()
    (tmp_path / "s" / "format").write_text("clew-store 99\n")
    with pytest.raises(ClewError, match="another format"):
        Store(tmp_path / "s")


def test_a_place_where_no_store_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((NotAllowed, NotFound, ClewError)):
        Store(tmp_path / "file" / "store")


@pytest.mark.parametrize("size", [1, 4096, (20 << 20) + 7])
def test_a_part_is_read_without_the_rest(store: Store, size: int) -> None:
    data = noise(size)
    digest = store.put_bytes(data).digest
    for start, stop in (
        (0, 1),
        (0, size),
        (size // 3, size // 2),
        (size - 1, size + 5),
        (size, size),
    ):
        assert b"".join(store.read_part(digest, start, stop)) == data[start:stop]


def test_a_part_of_holes_and_data(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"begin")
        file.seek(30 << 20)
        file.write(b"end")
    digest = store.put_file(os.fsencode(path)).digest
    data = path.read_bytes()
    for start, stop in ((3, 1 << 20), (10 << 20, 11 << 20), ((30 << 20) - 1, (30 << 20) + 3)):
        assert b"".join(store.read_part(digest, start, stop)) == data[start:stop]
