"""Which content of files is known, from the trace and the store."""

import os
from pathlib import Path

from blake3 import blake3

from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import FileStat, Open, Saved
from clew.witness.syscalls.version_tracker import file_stat_of

SETTLED = os.fsencode(os.__file__)
"""A file whose last change is old enough for its state to identify its content."""


def opened(path: bytes, file_stat: FileStat) -> Open:
    return Open(1, 0, 1, path, path, os.O_RDONLY, file_stat, None, 1)


def contents(store: Store, directory: Path) -> ContentCapture:
    return ContentCapture(store, saved=directory, store_content=True, exclude=())


def test_the_content_of_a_stored_state_is_known_after_the_file_is_deleted(tmp_path: Path) -> None:
    file_stat = file_stat_of(os.stat(SETTLED))
    with Store(tmp_path / "store") as store:
        store.put_file(SETTLED)
    with Store(tmp_path / "store") as store:
        capture = contents(store, tmp_path)
        capture.follow([opened(b"/no/such/file", file_stat)])
        known = capture.known(file_stat)
        assert known is not None
        assert known.kept
        assert b"".join(store.read(known.stored.digest)) == Path(os.__file__).read_bytes()


def test_a_state_that_was_never_stored_has_no_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    file_stat = file_stat_of(file.stat())
    file.write_text("after, and longer")
    with Store(tmp_path / "store") as store:
        capture = contents(store, tmp_path)
        capture.follow([opened(os.fsencode(file), file_stat)])
        assert capture.known(file_stat) is None
        assert "changed" in capture.why_missing(file_stat)


def test_an_excluded_file_that_was_saved_before_a_change_is_not_stored(tmp_path: Path) -> None:
    file = tmp_path / "mine.key"
    file.write_text("a secret")
    file_stat = file_stat_of(file.stat())
    (tmp_path / "saved").write_text("a secret")
    with Store(tmp_path / "store") as store:
        capture = ContentCapture(store, saved=tmp_path, store_content=True, exclude=("*.key",))
        capture.follow([Saved(1, 0, 1, os.fsencode(file), file_stat, b"copy", b"saved", 0)])
        known = capture.known(file_stat)
        assert known is not None
        assert (known.kept, known.stored.size) == (False, 8)
        store.flush()
        assert not store.has(known.stored.digest)


def test_data_that_is_not_a_file_is_stored_in_one_call(tmp_path: Path) -> None:
    data = [b"a\0b", b"", b"a\0b", b"c"]
    with Store(tmp_path / "store") as store:
        kept = contents(store, tmp_path).store_all(data)
        store.flush()
        assert kept == [f"blake3:{blake3(item).hexdigest()}" for item in data]
        assert [b"".join(store.read(digest)) for digest in kept] == data
        nothing = ContentCapture(store, saved=tmp_path, store_content=False, exclude=())
        assert nothing.store_all(data) == [""] * 4
