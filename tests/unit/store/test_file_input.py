"""Known files are recognised by their signatures, and only changed ones are read again."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.store import Store, Stored
from clew.store.file_input import RACY_NS


def wait_until_old(root: Path) -> None:
    """Wait until the times of all files are old enough for their digests to be remembered."""
    newest = max(p.lstat().st_ctime_ns for p in root.rglob("*"))
    while time.time_ns() <= newest + RACY_NS:
        time.sleep(0.05)  # the clock itself is what is awaited


@contextmanager
def opened_files(patch: pytest.MonkeyPatch, root: Path) -> Iterator[list[str]]:
    """The names of the files below `root` that are opened inside the block."""
    names: list[str] = []
    real = os.open

    def spy(path: str | bytes | Path, flags: int, mode: int = 0o777) -> int:
        if os.fsencode(path).startswith(os.fsencode(root) + b"/"):
            names.append(os.path.basename(os.fsdecode(path)))
        return real(path, flags, mode)

    with patch.context() as inside:
        inside.setattr(os, "open", spy)
        yield names


def put(store: Store, root: Path) -> dict[str, bytes]:
    """Store all files in a directory; their bytes as the store gives them back, by name."""
    names = sorted(os.listdir(root))
    contents = {}
    for name, stored in zip(
        names, store.put_files([os.fsencode(root / name) for name in names]), strict=True
    ):
        assert isinstance(stored, Stored)
        contents[name] = b"".join(store.read(stored.digest))
    return contents


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "changed").write_bytes(b"these bytes")
    (root / "left").write_bytes(b"others")
    wait_until_old(root)
    return root


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


@pytest.mark.parametrize("change", [None, replaced, rewritten, Path.write_bytes])
def test_only_changed_files_are_read_again(
    tmp_path: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, bytes], object] | None,
) -> None:
    with Store(tmp_path / "s") as store, opened_files(monkeypatch, root) as names:
        expected = put(store, root)
        assert sorted(names) == ["changed", "left"]
    if change is not None:
        expected["changed"] = b"other bytes"
        change(root / "changed", expected["changed"])
    with Store(tmp_path / "s") as store, opened_files(monkeypatch, root) as names:
        assert put(store, root) == expected
        assert names == (["changed"] if change else [])


def test_a_known_file_that_is_not_stored_any_more_is_read_again(tmp_path: Path, root: Path) -> None:
    with Store(tmp_path / "s") as store:
        expected = put(store, root)
        lost = store.put_file(os.fsencode(root / "left")).digest
    with Store(tmp_path / "s") as store:
        store.forget_damaged(lost)
        assert put(store, root) == expected
        assert store.fsck().problems == []
