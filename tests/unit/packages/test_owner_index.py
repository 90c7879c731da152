import os
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from clew.packages.owner_index import OwnerIndex, Package, PackageFiles, load_index

PACKAGES = [Package("pkg:deb/debian/a@1", True), Package("pkg:deb/debian/b@2", None)]
OWNED = [(PACKAGES[0], [b"/a", b"/both", b"/\xff\n"]), (PACKAGES[1], [b"/b", b"/both"])]


@given(st.lists(st.sets(st.binary(max_size=5), max_size=20), max_size=5), st.binary(max_size=5))
def test_an_index_answers_as_the_lists_do(lists: list[set[bytes]], asked: bytes) -> None:
    packages = [Package(f"pkg:deb/debian/p{n}@1", n % 2 == 0) for n in range(len(lists))]
    made = OwnerIndex.build(zip(packages, lists, strict=True))
    again = OwnerIndex.from_bytes(made.to_bytes("s"), "s")
    assert again is not None
    for path in {asked}.union(*lists):
        first = next((p for p, files in zip(packages, lists, strict=True) if path in files), None)
        assert made.owner(path) == again.owner(path) == first


def test_bytes_of_another_state_or_cut_short_are_no_index() -> None:
    data = OwnerIndex.build(OWNED).to_bytes("state")
    assert OwnerIndex.from_bytes(data, "other") is None
    for end in range(len(data)):
        assert OwnerIndex.from_bytes(data[:end], "state") is None


class Records:
    """A source of ownership that counts how often it is read."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "records"
        self.file.write_text("x")
        os.utime(self.file, ns=(10**18, 10**18))
        self.reads = 0

    def read(self) -> PackageFiles:
        self.reads += 1
        return self._owned()

    def _owned(self) -> Iterator[tuple[Package, list[bytes]]]:
        yield from OWNED


def test_records_that_just_changed_are_not_kept(tmp_path: Path) -> None:
    records = Records(tmp_path)  # its change time is now
    for _ in range(2):
        made = load_index(tmp_path / "cache", "x", [records.file], records.read)
        assert made.owner(b"/a") == PACKAGES[0]
    assert records.reads == 2


def test_settled_records_are_read_once(tmp_path: Path) -> None:
    records = Records(tmp_path)
    settled = Path("/proc/self/exe").resolve()  # a file nobody is changing
    for _ in range(3):
        made = load_index(tmp_path / "cache", "x", [settled], records.read)
        assert made.owner(b"/b") == PACKAGES[1]
        assert made.owner(b"/c") is None
    assert records.reads == 1
    assert load_index(None, "x", [settled], records.read).owner(b"/b") == PACKAGES[1]
    assert records.reads == 2


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    records = Records(tmp_path)
    settled = Path("/proc/self/exe").resolve()
    (tmp_path / "file").write_text("")
    for _ in range(3):
        made = load_index(tmp_path / "file/below", "x", [settled], records.read)
        assert made.owner(b"/a") == PACKAGES[0]
    assert records.reads == 1  # this process knows it all the same
