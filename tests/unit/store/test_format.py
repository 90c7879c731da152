"""A store read by the rules of docs/formats/store.md alone.

Nothing of Clew is used to read: this is the program somebody would write from that page.
"""

import os
import random
import struct
from pathlib import Path

import blake3
import zstandard

from clew.store import Store


class Reader:
    """Knows the page, and no more."""

    def __init__(self, path: Path) -> None:
        assert (path / "format").read_text() == "clew-store 1\n"
        self.chunks: dict[bytes, tuple[Path, int, int, int, int, int, int]] = {}
        self.records: dict[bytes, tuple[int, int, list[tuple[bytes, int]]]] = {}
        self.whole: set[bytes] = set()
        for pack in (path / "packs").glob("*.pack"):
            self._table(pack, pack.read_bytes())

    def _table(self, pack: Path, data: bytes) -> None:
        assert data[:8] == b"CLEWPAK1"
        position, length, digest, end = struct.unpack("<QQ32s8s", data[-56:])
        assert end == b"CLEWEND1"
        assert position + length + 56 == len(data)
        table = data[position : position + length]
        assert blake3.blake3(table).digest() == digest
        rest = memoryview(table)

        def take(form: str) -> tuple[int, ...]:
            nonlocal rest
            size = struct.calcsize(form)
            values = struct.unpack(form, rest[:size])
            rest = rest[size:]
            return values

        for _ in range(take("<I")[0]):
            position, stored, length, codec, count = take("<QIIBI")
            start = 0
            for _ in range(count):
                (name,) = take("<32s")
                size, whole = take("<IB")
                self.chunks[name] = (pack, position, stored, length, codec, start, size)
                if whole:
                    self.whole.add(name)
                start += size
            assert start == length
        for _ in range(take("<I")[0]):
            (name,) = take("<32s")
            size, kind, count = take("<QBI")
            parts = [(take("<32s")[0], take("<Q")[0]) for _ in range(count)]
            self.records[name] = size, kind, parts
        assert not rest

    def contents(self) -> set[bytes]:
        return self.whole | set(self.records)

    def chunk(self, digest: bytes) -> bytes:
        pack, position, stored, length, codec, start, size = self.chunks[digest]
        data = pack.read_bytes()[position : position + stored]
        if codec == 1:
            data = zstandard.ZstdDecompressor().decompress(data, max_output_size=length)
        assert len(data) == length
        found = data[start : start + size]
        assert blake3.blake3(found).digest() == digest
        return found

    def read(self, digest: bytes) -> bytes:
        if digest not in self.records:
            assert digest in self.whole
            return self.chunk(digest)
        size, _, parts = self.records[digest]
        data = b"".join(bytes(n) if part == bytes(32) else self.chunk(part) for part, n in parts)
        assert len(data) == size
        assert blake3.blake3(data).digest() == digest
        return data


def raw(name: str) -> bytes:
    assert name.startswith("blake3:")
    return bytes.fromhex(name[7:])


def test_a_reader_made_from_the_page_reads_everything(tmp_path: Path) -> None:
    source = random.Random(4)
    contents: dict[bytes, bytes] = {}
    with open(tmp_path / "sparse", "wb") as file:
        file.write(b"head")
        file.truncate(9 << 20)
    with Store(tmp_path / "s") as store:
        for size in (0, 1, 5_000, 64 << 10, 200_000, 3 << 20, 9 << 20):
            for data in (source.randbytes(size), b"a line of text\n" * (size // 15)):
                contents[raw(store.put_bytes(data).digest)] = data
            store.flush()
        sparse = store.put_file(os.fsencode(tmp_path / "sparse"))
        contents[raw(sparse.digest)] = b"head" + bytes((9 << 20) - 4)
    (tmp_path / "s" / "index.db").unlink()

    reader = Reader(tmp_path / "s")
    for digest, data in contents.items():
        assert reader.read(digest) == data
    assert any(part == bytes(32) for part, _ in reader.records[raw(sparse.digest)][2])
    assert reader.contents() == set(contents)


def test_what_gc_rewrote_is_read_by_the_same_rules(tmp_path: Path) -> None:
    source = random.Random(5)
    data = [source.randbytes(size) for size in (10, 100_000, 5 << 20, 20, 6 << 20)]
    with Store(tmp_path / "s") as store:
        digests = [store.put_bytes(content).digest for content in data]
    with Store(tmp_path / "s") as store:
        store.gc([digests[0], digests[2]])
    reader = Reader(tmp_path / "s")
    assert reader.read(raw(digests[0])) == data[0]
    assert reader.read(raw(digests[2])) == data[2]
    assert raw(digests[4]) not in reader.contents()
