"""A directory goes in and comes out the same."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ClewError, Damaged, NotFound, UsageError
from clew.store import Store, trees
from clew.store.file_input import RACY


def make(root: Path) -> None:
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "sub.txt").write_text("sorts between sub and what is in it")
    (root / "sub" / "file").write_bytes(bytes(range(256)) * 1000)
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o755)
    (root / "link").symlink_to("sub/file")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    with open(os.fsencode(root) + b"/not \xff utf-8", "wb") as file:
        file.write(b"x")
    os.utime(root / "sub" / "file", ns=(1, 1_500_000_000_123_456_789))
    os.utime(root / "link", ns=(1, 1_400_000_000_000_000_001), follow_symlinks=False)
    (root / "sub").chmod(0o750)
    os.utime(root / "sub", ns=(1, 1_300_000_000_000_000_002))


def listed(root: bytes) -> list[tuple[bytes, int, int, bytes]]:
    found = []
    for directory, _, names in os.walk(root):
        for path in (directory, *(os.path.join(directory, name) for name in names)):
            status = os.lstat(path)
            data = b""
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    data = file.read()
            elif stat.S_ISLNK(status.st_mode):
                data = os.readlink(path)
            found.append((path[len(root) :], status.st_mode, status.st_mtime_ns, data))
    return sorted(found)


def test_a_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    root, to = tmp_path / "root", tmp_path / "out"
    make(root)
    with Store(tmp_path / "s") as store:
        snapshot = store.put_tree(root)
        assert snapshot.skipped == []
        assert snapshot.entries == 10
        store.restore_tree(snapshot.digest, to)
        assert listed(os.fsencode(to)) == listed(os.fsencode(root))
        again = store.put_tree(to)
        assert (again.digest, again.new_bytes) == (snapshot.digest, 0)
        with pytest.raises(UsageError):
            store.restore_tree(snapshot.digest, to)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "root", "s"]


def test_a_tree_keeps_what_it_lists(tmp_path: Path) -> None:
    make(tmp_path / "root")
    with Store(tmp_path / "s") as store:
        digest = store.put_tree(tmp_path / "root").digest
        other = store.put_bytes(b"named by nobody").digest
    with Store(tmp_path / "s") as store:
        assert store.gc([digest]).files == 1
        assert not store.has(other)
        store.restore_tree(digest, tmp_path / "out")
        assert store.fsck().problems == []


def test_a_file_with_the_bytes_of_a_tree_does_not_hide_it(tmp_path: Path) -> None:
    make(tmp_path / "root")
    with Store(tmp_path / "a") as store:
        data = b"".join(store.read(store.put_tree(tmp_path / "root").digest))
    with Store(tmp_path / "b") as store:
        plain = store.put_bytes(data).digest
        store.flush()
        assert store.put_tree(tmp_path / "root").digest == plain
    with Store(tmp_path / "b") as store:
        assert store.gc([plain]).files == 0
        store.restore_tree(plain, tmp_path / "out")


def test_what_is_no_tree_is_said(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        with pytest.raises(Damaged):
            store.restore_tree(store.put_bytes(b"hello").digest, tmp_path / "out")
        with pytest.raises(NotFound):
            store.put_tree(tmp_path / "absent")


def test_a_tree_cannot_reach_outside(tmp_path: Path) -> None:
    entries = [
        trees.Entry(b"", b"d", 0o755, 0, 0, b""),
        trees.Entry(b"../evil", b"l", 0o777, 0, 0, b"/"),
    ]
    with Store(tmp_path / "s") as store:
        digest = store.put_bytes(trees.encode(entries)).digest
        with pytest.raises(Damaged):
            store.restore_tree(digest, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s"]


name = st.binary(min_size=1, max_size=20).filter(lambda b: b"\0" not in b)
entry = st.builds(
    trees.Entry,
    name,
    st.sampled_from([b"f", b"d", b"l", b"p"]),
    st.integers(0, 0o7777),
    st.integers(-(1 << 62), 1 << 62),
    st.integers(0, 1 << 62),
    name,
)


@given(st.lists(entry))
def test_encoding_and_decoding_are_inverse(entries: list[trees.Entry]) -> None:
    assert trees.decode(trees.encode(entries)) == sorted(entries)


# -- again


def old(root: Path) -> None:
    """Wait until the times of all files are old enough for their digests to be remembered."""
    newest = max(p.lstat().st_ctime_ns for p in root.rglob("*"))
    while time.time_ns() <= newest + RACY:
        time.sleep(0.05)  # the clock itself is what is awaited


@contextmanager
def opened(patch: pytest.MonkeyPatch, root: Path) -> Iterator[list[str]]:
    """The files below `root` that are opened meanwhile, by their names."""
    names: list[str] = []
    real = os.open

    def noting(path: str | bytes | Path, flags: int, mode: int = 0o777) -> int:
        if os.fsencode(path).startswith(os.fsencode(root) + b"/"):
            names.append(os.path.basename(os.fsdecode(path)))
        return real(path, flags, mode)

    with patch.context() as inside:
        inside.setattr(os, "open", noting)
        yield names


def contents(store: Store, digest: str) -> dict[bytes, bytes]:
    """The bytes of each file in a tree."""
    entries = trees.decode(b"".join(store.read(digest)))
    return {e.path: b"".join(store.read(e.target.decode())) for e in entries if e.kind == b"f"}


def test_a_tree_that_did_not_change_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    make(root)
    old(root)
    with Store(tmp_path / "s") as store:
        with opened(monkeypatch, root) as names:
            first = store.put_tree(root)
        assert sorted(os.fsencode(name) for name in names) == sorted(
            [b"file", b"not \xff utf-8", b"script", b"sub.txt"]
        )
    with Store(tmp_path / "s") as store:
        with opened(monkeypatch, root) as names:
            again = store.put_tree(root)
        assert names == []
        assert again == first._replace(new_bytes=0)


def replaced(path: Path, data: bytes) -> None:
    """Another file in its place, as large and as old."""
    other = path.with_name("other")
    other.write_bytes(data)
    os.utime(other, ns=(1, path.stat().st_mtime_ns))
    other.rename(path)


def rewritten(path: Path, data: bytes) -> None:
    """Other bytes in the same file, its modification time put back."""
    mtime = path.stat().st_mtime_ns
    path.write_bytes(data)
    os.utime(path, ns=(1, mtime))


@pytest.mark.parametrize("change", [replaced, rewritten, Path.write_bytes])
@pytest.mark.parametrize("data", [b"other bytes", b"more of other bytes"])
def test_of_a_tree_that_changed_what_changed_is_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, bytes], object],
    data: bytes,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "changed").write_bytes(b"these bytes")
    (root / "left").write_bytes(b"others")
    old(root)
    with Store(tmp_path / "s") as store:
        store.put_tree(root)
    change(root / "changed", data)
    with Store(tmp_path / "s") as store:
        with opened(monkeypatch, root) as names:
            again = store.put_tree(root)
        assert names == ["changed"]
        assert contents(store, again.digest) == {b"changed": data, b"left": b"others"}


def test_a_known_file_that_is_stored_no_more_is_read_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make(root)
    old(root)
    with Store(tmp_path / "s") as store:
        first = store.put_tree(root)
        lost = store.put_file(os.fsencode(root / "script")).digest
    with Store(tmp_path / "s") as store:
        store.give_up(lost)
        again = store.put_tree(root)
        assert (again.digest, again.new_bytes > 0) == (first.digest, True)
        assert contents(store, again.digest)[b"script"] == b"#!/bin/sh\n"
        assert store.fsck().problems == []


def test_a_snapshot_says_what_it_lacks(tmp_path: Path) -> None:
    root = Path("/proc/sys/kernel/random")  # whose files say they are empty, and are not
    with Store(tmp_path / "s") as store:
        snapshot = store.put_tree(root)
        assert str(root / "boot_id") in {problem.where for problem in snapshot.skipped}
        assert snapshot.entries + len(snapshot.skipped) == 1 + len(list(root.iterdir()))


def test_a_file_alone_is_a_tree(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"alone")
    with Store(tmp_path / "s") as store:
        snapshot = store.put_tree(tmp_path / "file")
        assert (snapshot.entries, snapshot.size) == (1, 5)
        assert contents(store, snapshot.digest) == {b"": b"alone"}


def test_a_tree_cannot_write_outside_its_directory(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = os.fsencode(outside)
    root = trees.Entry(b"", b"d", 0o755, 0, 0, b"")
    link = trees.Entry(b"a", b"l", 0o777, 0, 0, target)
    with Store(tmp_path / "s") as store:
        digest = store.put_bytes(b"evil").digest.encode()

        def file(path: bytes) -> trees.Entry:
            return trees.Entry(path, b"f", 0o644, 0, 4, digest)

        hostile = [
            [root, link, file(b"a/x")],
            [root, link, trees.Entry(b"a", b"d", 0o000, 0, 0, b"")],
            [root, link, trees.Entry(b"a/x", b"d", 0o755, 0, 0, b"")],
            [trees.Entry(b"", b"l", 0o777, 0, 0, target), file(b"x")],
            [link, file(b"a/x")],
            [root, file(b"../outside/x")],
            [root, file(target + b"/x")],
            [root, file(b"")],
            [],
        ]
        for number, entries in enumerate(hostile):
            tree = store.put_bytes(trees.encode(entries)).digest
            with pytest.raises(ClewError):
                store.restore_tree(tree, tmp_path / f"to{number}")
            assert not (tmp_path / f"to{number}").exists()
        with pytest.raises(Damaged):
            store.restore_tree(store.put_bytes(trees.MAGIC + b"x\0y\0z\0").digest, tmp_path / "to")
    assert list(outside.iterdir()) == []
    assert outside.stat().st_mode & 0o777 != 0
