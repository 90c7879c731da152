"""Nothing outside a volume is reachable: by no path, no link, and in no moment between two."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ClewError, Exists, NotAllowed, NotFound, UsageError
from clew.viewer.directory_listing import list_directory
from clew.viewer.upload import open_upload
from clew.viewer.volume import Volume

SECRET = b"nobody may read this"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "secret").write_bytes(SECRET)
    return directory


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    directory = tmp_path / "volume"
    (directory / "inner" / "deep").mkdir(parents=True)
    (directory / "file").write_bytes(b"a file")
    (directory / "inner" / "file").write_bytes(b"inner")
    (directory / "out").symlink_to(outside)
    (directory / "up").symlink_to("../outside/secret")
    (directory / "secret").symlink_to(outside / "secret")
    (directory / "inner" / "deep" / "far").symlink_to("../../../outside")
    (directory / "loop").symlink_to("loop")
    (directory / "proc").symlink_to("/proc/self/root")
    (directory / "kept").symlink_to("inner/file")
    os.mkfifo(directory / "pipe")
    return directory


@pytest.fixture(params=[False, True], ids=["openat2", "walking"])
def volume(root: Path, request: pytest.FixtureRequest) -> Iterator[Volume]:
    opened = Volume(root, walk=request.param)
    yield opened
    opened.close()


def content(volume: Volume, path: bytes) -> bytes:
    with volume.file(path) as found:
        return os.read(found, 1 << 20)


OUT = (b"out/secret", b"up", b"secret", b"inner/deep/far/secret", b"loop", b"proc/etc/passwd")


@pytest.mark.parametrize("path", OUT)
def test_no_link_leads_out(volume: Volume, path: bytes) -> None:
    with pytest.raises((NotAllowed, NotFound)):
        content(volume, path)
    with pytest.raises((NotAllowed, NotFound)):
        volume.stat(path)


@pytest.mark.parametrize("path", [b"../outside/secret", b"inner/../../outside", b"./file", b"a\0b"])
def test_no_path_leads_up(volume: Volume, path: bytes) -> None:
    with pytest.raises(UsageError):
        content(volume, path)


@pytest.mark.parametrize("path", [b"out", b"inner/deep/far", b"proc", b"out/new"])
def test_nothing_is_listed_made_or_deleted_through_a_link(
    volume: Volume, outside: Path, path: bytes
) -> None:
    with pytest.raises(ClewError):
        list_directory(volume, path)
    with pytest.raises(ClewError):
        volume.make_directory(path + b"/made")
    with pytest.raises(ClewError), open_upload(volume, path + b"/sent", "key"):
        pass
    with pytest.raises(ClewError):
        volume.delete(path + b"/secret")
    with pytest.raises(ClewError):
        volume.rename(b"file", path + b"/file")
    with pytest.raises(ClewError):
        volume.rename(path + b"/secret", b"taken")
    assert [entry.name for entry in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET


def test_what_is_inside_is_there(volume: Volume) -> None:
    assert content(volume, b"file") == b"a file"
    assert content(volume, b"/inner//file") == b"inner"
    for wrong in (b"pipe", b"inner"):
        with pytest.raises(ClewError):
            content(volume, wrong)
    with pytest.raises(NotFound):
        content(volume, b"nowhere")
    with pytest.raises(NotFound):
        content(volume, b"file/below")


def test_links_inside_are_followed(root: Path) -> None:
    assert content(Volume(root), b"kept") == b"inner"


def test_deleting_follows_no_link(volume: Volume, root: Path, outside: Path) -> None:
    (root / "inner" / "way").symlink_to(outside)
    with pytest.raises(Exists):
        volume.delete(b"inner")
    volume.delete(b"inner", recursive=True)
    volume.delete(b"out")
    assert not (root / "inner").exists()
    assert not (root / "out").is_symlink()
    assert (outside / "secret").read_bytes() == SECRET
    for path in (b"", b"/"):
        with pytest.raises(NotAllowed):
            volume.delete(path, recursive=True)


def test_renaming_replaces_nothing(volume: Volume, root: Path) -> None:
    with pytest.raises(Exists):
        volume.rename(b"file", b"inner/file")
    with pytest.raises(UsageError):
        volume.rename(b"inner", b"inner/deep/inner")
    with pytest.raises(NotFound):
        volume.rename(b"nowhere", b"somewhere")
    volume.rename(b"file", b"inner/renamed")
    assert (root / "inner" / "renamed").read_bytes() == b"a file"
    with pytest.raises(Exists):
        volume.make_directory(b"inner")


def test_a_race_gains_nothing(volume: Volume, root: Path, outside: Path) -> None:
    """A directory that is now one, now a link out: whatever is opened through it is inside."""
    (root / "swap").mkdir()
    (root / "swap" / "secret").write_bytes(b"harmless")
    (root / "trap").symlink_to(outside)
    ending = threading.Event()

    def swap() -> None:
        while not ending.is_set():
            (root / "swap").rename(root / "aside")
            (root / "trap").rename(root / "swap")
            (root / "swap").rename(root / "trap")
            (root / "aside").rename(root / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    found, attempts = set(), 0
    try:
        # On a busy machine, one side may be seen late.
        while attempts < 3000 or (len(found) < 2 and attempts < 300_000):
            attempts += 1
            try:
                found.add(content(volume, b"swap/secret"))
            except (NotFound, NotAllowed):
                found.add(b"refused")
    finally:
        ending.set()
        thread.join()
    assert found == {b"harmless", b"refused"}


names = st.sampled_from(
    [b"..", b".", b"", b"out", b"inner", b"deep", b"far", b"secret", b"up", b"proc", b"etc"]
)


@given(st.lists(names, max_size=7))
def test_no_mix_of_them_leads_out(volume: Volume, path: list[bytes]) -> None:
    try:
        found = content(volume, b"/".join(path))
    except ClewError:
        return
    assert found != SECRET


def test_a_listing_tells_nothing_of_what_is_outside(volume: Volume) -> None:
    found = {entry.name: entry for entry in list_directory(volume, b"").entries}
    assert found["out"].leads is None
    secret = found["secret"]
    assert (secret.kind, secret.leads, secret.size) == ("link", None, 0)
    assert found["pipe"].kind == "other"
    assert found["inner"].kind == "folder"
    assert found["file"].size == 6


def test_a_listing_comes_in_order_and_in_pages(tmp_path: Path) -> None:
    for size, name in enumerate(("b", "A", "c")):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "z").mkdir()
    (tmp_path / ".clew-upload-1").touch()
    volume = Volume(tmp_path)

    def order(**asked: object) -> list[str]:
        return [entry.name for entry in list_directory(volume, b"", **asked).entries]  # type: ignore[arg-type]

    assert order() == ["z", "A", "b", "c"]
    assert order(sort="size", descending=True) == ["z", "c", "A", "b"]
    assert order(offset=1, limit=2) == ["A", "b"]
    assert order(containing="a") == ["A"]
    assert list_directory(volume, b"", limit=1).total == 4
    with pytest.raises(UsageError):
        list_directory(volume, b"", sort="colour")
    volume.close()
