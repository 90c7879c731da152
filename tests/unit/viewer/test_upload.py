"""Files on their way in: whole or not there, one sender at a time."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.errors import Busy, NotAllowed
from clew.viewer.byte_ranges import etag_of
from clew.viewer.upload import PreconditionFailed, count_received, open_upload
from clew.viewer.volume import Volume


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    opened = Volume(tmp_path)
    yield opened
    opened.close()


def test_a_file_is_there_when_it_is_whole(volume: Volume, tmp_path: Path) -> None:
    with open_upload(volume, b"f", "key") as one:
        one.write(b"half")
        assert not (tmp_path / "f").exists()
    assert count_received(volume, b"f", "key") == 4
    assert count_received(volume, b"f", "another") == count_received(volume, b"g", "key") == 0
    with open_upload(volume, b"f", "key") as one:
        one.write(b" and half")
        tag, new = one.finish(expected=None, new=True)
    assert new
    assert tag == etag_of((tmp_path / "f").stat())
    assert (tmp_path / "f").read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["f"]


def test_what_is_replaced_is_what_was_meant(volume: Volume, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o640)
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "folder").mkdir()
    tag = etag_of((tmp_path / "f").stat())
    for path, expected, new in ((b"f", None, True), (b"f", '"other"', False), (b"g", tag, False)):
        with open_upload(volume, path, "key") as one, pytest.raises(PreconditionFailed):
            one.finish(expected=expected, new=new)
    for path in (b"link", b"folder"):
        with open_upload(volume, path, "key") as one, pytest.raises(NotAllowed):
            one.finish(expected=None, new=False)
    assert (tmp_path / "f").read_bytes() == b"old"
    with open_upload(volume, b"f", "key") as one:
        one.write(b"new")
        assert one.finish(expected=tag, new=False)[1] is False
    assert (tmp_path / "f").read_bytes() == b"new"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_one_sender_at_a_time(volume: Volume, tmp_path: Path) -> None:
    with open_upload(volume, b"f", "key") as one:
        with pytest.raises(Busy), open_upload(volume, b"f", "key"):
            pass
        with open_upload(volume, b"f", "another") as other:
            other.write(b"other")
            other.finish(expected=None, new=False)
        one.write(b"one")
        one.finish(expected=None, new=False)
    assert (tmp_path / "f").read_bytes() == b"one"


def test_what_was_left_long_ago_is_swept(volume: Volume, tmp_path: Path) -> None:
    for key in ("old", "young"):
        with open_upload(volume, b"f", key) as one:
            one.write(b"some")
    for draft in tmp_path.iterdir():
        os.utime(draft, (0, time.time() - 8 * 24 * 3600))
    with open_upload(volume, b"f", "young") as one:
        assert one.size == 0
    assert len(list(tmp_path.iterdir())) == 1
