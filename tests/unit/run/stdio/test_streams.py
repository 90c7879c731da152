"""What is kept of a stream: all of it masked, up to a limit, with a digest of the whole."""

import shutil
import tempfile
from pathlib import Path

import blake3
from hypothesis import given
from hypothesis import strategies as st

from clew.redaction import Redactor
from clew.run.stdio.streams import StreamCapture

SECRET = b"hunter22"
REDACTOR = Redactor({"PASSWORD": SECRET.decode()})


@given(
    pieces=st.lists(st.one_of(st.binary(max_size=12), st.just(SECRET), st.just(SECRET[:5]))),
    limit=st.integers(1, 60),
)
def test_what_is_kept(pieces: list[bytes], limit: int) -> None:
    path = Path(tempfile.mkdtemp()) / "kept"
    keeper = StreamCapture(path, redactor=REDACTOR, limit=limit)
    try:
        for piece in pieces:
            keeper.feed(piece)
        keeper.finish()
        whole = REDACTOR.text(b"".join(pieces))
        assert path.read_bytes() == whole[:limit]
        assert keeper.size == len(whole)
        assert keeper.whole == (len(whole) <= limit)
        assert keeper.digest == f"blake3:{blake3.blake3(whole).hexdigest()}"
        assert SECRET not in path.read_bytes()
    finally:
        shutil.rmtree(path.parent)


def test_a_full_disk_ends_the_keeping_not_the_stream(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    keeper = StreamCapture(tmp_path / "full", redactor=Redactor({}), limit=100)
    keeper.feed(b"some")
    keeper.feed(b" words")
    keeper.finish()
    assert not keeper.whole
    assert keeper.digest == f"blake3:{blake3.blake3(b'some words').hexdigest()}"
