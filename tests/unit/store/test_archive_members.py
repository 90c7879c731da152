"""The files in stored archives; archives are untrusted."""

import io
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
from blake3 import blake3

from clew.store import Store, archive_members
from clew.store.archive_members import Member, list_members

FILES = {"data/raw.csv": b"1,2\n" * 100, "b": b"b" * 2000}
LISTED = {blake3(content).digest(): Member(name, len(content)) for name, content in FILES.items()}


def make_zip(files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def make_tar(files: dict[str, bytes], compression: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def listed(folder: Path, archive: bytes) -> archive_members.Members:
    with Store(folder / "store") as store:
        digest = store.put_bytes(archive).digest
        store.flush()
    return list_members(folder / "store", folder / "cache", digest)


@pytest.mark.parametrize("kind", ["zip", "", "gz", "bz2", "xz"])
def test_files_are_listed_and_the_list_is_cached(tmp_path: Path, kind: str) -> None:
    archive = make_zip(FILES) if kind == "zip" else make_tar(FILES, kind)
    assert listed(tmp_path, archive) == LISTED
    digest = f"blake3:{blake3(archive).hexdigest()}"
    assert list_members(tmp_path / "no store", tmp_path / "cache", digest) == LISTED


def test_what_is_not_an_archive_or_not_stored(tmp_path: Path) -> None:
    assert listed(tmp_path, b"PK\x03\x04 but no more") == {}
    assert listed(tmp_path, b"just text") == {}
    assert list_members(tmp_path / "store", tmp_path / "cache", "blake3:" + "0" * 64) == {}


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_members, "_UNPACKED", 2000)
    first = dict([next(iter(LISTED.items()))])
    assert listed(tmp_path / "a", make_zip(FILES)) == first
    assert listed(tmp_path / "b", make_tar(FILES, "gz")) == first
    monkeypatch.setattr(archive_members, "_MEMBERS", 1)
    assert listed(tmp_path / "c", make_zip(FILES)) == first
    monkeypatch.setattr(archive_members, "_DIRECTORY", 10)
    assert listed(tmp_path / "d", make_zip(FILES)) == {}
    two_ends = bytearray(make_zip(FILES))
    two_ends[-6:-2] = b"PK\x05\x06"  # a second one inside the end of the archive
    assert archive_members._directory_size(io.BytesIO(two_ends)) > 10
    monkeypatch.setattr(archive_members, "_LARGEST", 10)
    assert listed(tmp_path / "f", make_tar(FILES)) == {}


def test_members_that_need_much_memory_or_a_password_are_left_out(tmp_path: Path) -> None:
    assert listed(tmp_path, make_zip(FILES, zipfile.ZIP_LZMA)) == {}
    encrypted = bytearray(make_zip(FILES))
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    assert listed(tmp_path, bytes(encrypted)) == dict([list(LISTED.items())[1]])


@pytest.mark.parametrize("kind", ["zip", "", "gz"])
def test_damaged_archives(tmp_path: Path, kind: str) -> None:
    whole = make_zip(FILES) if kind == "zip" else make_tar(FILES, kind)
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        del damaged[chance.randrange(len(damaged)) + 1 :]
        with io.BytesIO(damaged) as file:
            for _, member in archive_members._hash_members(file):
                assert member.size <= archive_members._UNPACKED
