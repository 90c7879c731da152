"""What one store gives another takes: whole, proved, and only what it lacks."""

import random
from collections.abc import Sequence

import pytest

from clew.errors import Damaged, NoContent
from clew.store import Store
from clew.store.packs import pack_format
from clew.store.remotes import server_fetch, upload
from clew.store.remotes.pack_transfer import PackExport
from clew.store.remotes.server_fetch import fetch_contents
from clew.store.types import parse_digest


class Window:
    """Another store, as one is given content by it."""

    def __init__(self, giving: PackExport) -> None:
        self._giving = giving
        self.packs: list[bytes] = []

    def records(self, contents: Sequence[bytes]) -> bytes:
        return self._giving.records(contents)

    def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
        self.packs.append(self._giving.chunks(chunks, alone=alone))
        return self.packs[-1]


def raw(*digests: str) -> list[bytes]:
    return [parse_digest(digest) or b"" for digest in digests]


def put(store: Store, *contents: bytes) -> list[str]:
    found = [store.put_bytes(content).digest for content in contents]
    store.flush()
    return found


def fetch(here: Store, there: Store, *digests: str) -> Window:
    window = Window(there.pack_export())
    fetch_contents(here.pack_import(), window, raw(*digests))
    return window


def contents(seed: int) -> list[bytes]:
    numbers = random.Random(seed)
    small = [numbers.randbytes(numbers.randrange(1, 3000)) for _ in range(200)]
    large = numbers.randbytes(5 << 20)
    return [b"", *small, large, large[:-7] + b"another", bytes(1 << 20)]


def test_all_arrives(here: Store, there: Store) -> None:
    wanted = contents(1)
    digests = put(there, *wanted)
    fetch(here, there, *digests)
    assert [b"".join(here.read(digest)) for digest in digests] == wanted
    assert not here.fsck().problems


def test_nothing_travels_twice(here: Store, there: Store) -> None:
    digests = put(there, *contents(2))
    fetch(here, there, *digests)
    assert fetch(here, there, *digests).packs == []


def test_what_is_alike_travels_once(here: Store, there: Store) -> None:
    large = random.Random(3).randbytes(8 << 20)
    one, other = put(there, large, b"first " + large)
    fetch(here, there, one)
    window = fetch(here, there, other)
    assert 0 < sum(map(len, window.packs)) < len(large) / 8
    assert b"".join(here.read(other)) == b"first " + large


def test_a_pack_is_bounded(here: Store, there: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.store.remotes.pack_transfer.PACK_BYTES", 1 << 20)
    wanted = contents(4)
    digests = put(there, *wanted)
    window = fetch(here, there, *digests)
    assert len(window.packs) > 3
    assert max(map(len, window.packs)) < (1 << 20) + upload.BLOCK_BYTES + (1 << 20)
    assert [b"".join(here.read(digest)) for digest in digests] == wanted


def test_many_contents_are_requested_in_batches(
    here: Store, there: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_fetch, "MAX_DIGESTS", 7)
    wanted = contents(5)
    digests = put(there, *wanted)
    fetch(here, there, *digests)
    assert [b"".join(here.read(digest)) for digest in digests] == wanted


def test_a_chunk_that_is_a_content_of_its_own(here: Store, there: Store) -> None:
    """Whichever comes first: alone, or as a part of another."""
    numbers = random.Random(6)
    (whole,) = put(there, numbers.randbytes(2 << 20))
    part, length = there._reader.parts(raw(whole)[0])[0]
    data = there._reader.chunk(part)
    (alone,) = put(there, data)
    assert len(data) == length
    assert raw(alone) == [part]
    fetch(here, there, whole)
    fetch(here, there, alone)
    assert b"".join(here.read(alone)) == data
    assert here.has(alone)


def test_what_is_not_there_is_not_promised(here: Store, there: Store) -> None:
    (known,) = put(there, b"known")
    with pytest.raises(NoContent):
        fetch(here, there, known, f"blake3:{'0' * 64}")
    with pytest.raises(NoContent):
        there.pack_export().chunks([bytes(32)], alone=[])


def test_who_gives_something_else_is_not_believed(here: Store, there: Store) -> None:
    (digest,) = put(there, random.Random(7).randbytes(3 << 20))

    class Lying(Window):
        def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
            data = bytearray(super().chunks(chunks, alone))
            data[len(pack_format.MAGIC) + 100] ^= 1
            return bytes(data)

    with pytest.raises(Damaged):
        fetch_contents(here.pack_import(), Lying(there.pack_export()), raw(digest))
    assert not here.has(digest)


def test_a_server_that_sends_empty_packs_is_not_asked_forever(here: Store, there: Store) -> None:
    (digest,) = put(there, random.Random(8).randbytes(3 << 20))

    class Empty(Window):
        def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
            return upload.build_pack([])[0]

    with pytest.raises(Damaged):
        fetch_contents(here.pack_import(), Empty(there.pack_export()), raw(digest))


def test_an_interrupted_download_resumes(here: Store, there: Store) -> None:
    wanted = contents(9)
    digests = put(there, *wanted)

    class Cut(Window):
        def chunks(self, chunks: Sequence[bytes], alone: Sequence[bytes]) -> bytes:
            if self.packs:
                raise ConnectionError
            return super().chunks(chunks[:3], alone[:3])

    with pytest.raises(ConnectionError):
        fetch_contents(here.pack_import(), Cut(there.pack_export()), raw(*digests))
    window = fetch(here, there, *digests)
    assert sum(map(len, window.packs)) > 0
    assert [b"".join(here.read(digest)) for digest in digests] == wanted
