"""What is known of the content of files, from what was seen of them and what is stored."""

from __future__ import annotations

import os
from pathlib import Path

from blake3 import blake3

from clew.store import Store
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.trace_format import Facts, Open, Saved
from clew.witness.syscalls.version_tracker import facts_of

SETTLED = os.fsencode(os.__file__)
"""A file that has not changed for long enough to be known by its state."""


def opened(path: bytes, facts: Facts) -> Open:
    return Open(1, 0, 1, path, path, os.O_RDONLY, facts, None, 1)


def contents(store: Store, folder: Path) -> ContentCapture:
    return ContentCapture(store, spool=folder, keep=True, exclude=())


def test_a_stored_state_is_known_though_the_file_is_gone(tmp_path: Path) -> None:
    facts = facts_of(os.stat(SETTLED))
    with Store(tmp_path / "store") as store:
        store.put_file(SETTLED)
    with Store(tmp_path / "store") as store:
        seen = contents(store, tmp_path)
        seen.follow([opened(b"/no/such/file", facts)])
        known = seen.known(facts)
        assert known is not None
        assert known.kept
        assert b"".join(store.read(known.stored.digest)) == Path(os.__file__).read_bytes()


def test_a_state_that_nobody_stored_is_not_made_up(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    facts = facts_of(file.stat())
    file.write_text("after, and longer")
    with Store(tmp_path / "store") as store:
        seen = contents(store, tmp_path)
        seen.follow([opened(os.fsencode(file), facts)])
        assert seen.known(facts) is None
        assert "changed" in seen.why_missing(facts)


def test_an_excluded_file_that_was_saved_before_a_change_is_not_stored(tmp_path: Path) -> None:
    file = tmp_path / "mine.key"
    file.write_text("a secret")
    facts = facts_of(file.stat())
    (tmp_path / "saved").write_text("a secret")
    with Store(tmp_path / "store") as store:
        seen = ContentCapture(store, spool=tmp_path, keep=True, exclude=("*.key",))
        seen.follow([Saved(1, 0, 1, os.fsencode(file), facts, b"copy", b"saved", 0)])
        known = seen.known(facts)
        assert known is not None
        assert (known.kept, known.stored.size) == (False, 8)
        store.flush()
        assert not store.has(known.stored.digest)


def test_what_is_no_file_is_kept_in_one_go(tmp_path: Path) -> None:
    data = [b"a\0b", b"", b"a\0b", b"c"]
    with Store(tmp_path / "store") as store:
        kept = contents(store, tmp_path).keep_all(data)
        store.flush()
        assert kept == [f"blake3:{blake3(one).hexdigest()}" for one in data]
        assert [b"".join(store.read(digest)) for digest in kept] == data
        nothing = ContentCapture(store, spool=tmp_path, keep=False, exclude=())
        assert nothing.keep_all(data) == [""] * 4
