"""What is known of the machine's packages is kept once for all projects of a user; whatever
becomes of it there, an execution is recorded, and says whose its files are."""

import os
import sys
from pathlib import Path

import pytest
from tests.driver import Project, Recording
from tests.local.processes import as_root, mounted

from clew.packages import debian

pytestmark = pytest.mark.skipif(not debian.is_installed(Path("/")), reason="needs dpkg")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A user's cache of its own: the other tests share that of whoever runs them."""
    return tmp_path / "cache"


def project(folder: Path, cache: Path) -> Project:
    return Project(folder, XDG_CACHE_HOME=str(cache))


def kept(cache: Path) -> tuple[Path, os.stat_result]:
    [file] = (cache / "clew" / "owners").glob("deb-*")
    return file, file.stat()


def owner_of_true(recording: Recording) -> str:
    path = os.path.realpath("/bin/true")
    name: str = recording.files[path]["package"]["name"]
    return name


def test_two_projects_make_it_once(tmp_path: Path, cache: Path) -> None:
    for name in ("one", "two"):
        made = project(tmp_path / name, cache)
        assert owner_of_true(made.exec("true")) == "coreutils"
        assert owner_of_true(made.exec("true")) == "coreutils"
        if name == "one":
            before = kept(cache)
        assert not list((made.folder / ".clew" / "cache").iterdir())
    assert kept(cache) == before


@pytest.mark.parametrize("damage", ["flipped", "short", "empty"])
def test_a_damaged_cache_is_rebuilt(tmp_path: Path, cache: Path, damage: str) -> None:
    here = project(tmp_path, cache)
    here.exec("true")
    file, before = kept(cache)
    whole = file.read_bytes()
    middle = len(whole) // 2
    damaged = {
        "flipped": whole[:middle] + bytes(byte ^ 0xFF for byte in whole[middle:]),
        "short": whole[:middle],
        "empty": b"",
    }
    file.write_bytes(damaged[damage])
    assert owner_of_true(here.exec("true")) == "coreutils"
    again, after = kept(cache)
    assert (again, again.read_bytes()) == (file, whole)
    assert after.st_ino != before.st_ino


@pytest.mark.parametrize("whose", ["everybody's", pytest.param("another's", marks=as_root)])
def test_one_that_others_could_have_written_is_not_believed(
    tmp_path: Path, cache: Path, whose: str
) -> None:
    here = project(tmp_path, cache)
    here.exec("true")
    file, before = kept(cache)
    lie(file)
    assert owner_of_true(here.exec("true")) == "liar"  # what this user wrote is
    lie(file)
    if whose == "another's":
        os.chown(file, 65534, -1)
    else:
        file.chmod(0o666)
    assert owner_of_true(here.exec("true")) == "coreutils"
    _, after = kept(cache)
    assert (after.st_uid, after.st_mode) == (before.st_uid, before.st_mode)


def lie(file: Path) -> None:
    """Change what it says, as somebody who knows the format would."""
    from blake3 import blake3

    told = file.read_bytes()[32:].replace(b"/coreutils@", b"/liar@")
    file.write_bytes(blake3(told).digest() + told)


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for number, cache in enumerate((tmp_path / "file", Path("/proc/nowhere"))):
        here = project(tmp_path / str(number), cache)
        for _ in range(2):
            recording = here.exec("true")
            assert (recording.status, recording.err, recording.gaps) == (0, b"", [])
            assert owner_of_true(recording) == "coreutils"


@as_root
def test_a_full_disk_does_no_harm(tmp_path: Path, cache: Path) -> None:
    with mounted(cache, "-t", "tmpfs", "-o", "size=256k", "none"):
        recording = project(tmp_path, cache).exec("true")
        assert (recording.status, recording.err, recording.gaps) == (0, b"", [])
        assert owner_of_true(recording) == "coreutils"
        assert not list((cache / "clew" / "owners").iterdir())


@pytest.mark.parametrize("linked", [False, True])
def test_no_record_tells_of_it(tmp_path: Path, cache: Path, linked: bool) -> None:
    """Not even where the command is Clew itself, and makes, reads and clears it."""
    (tmp_path / "home").mkdir()
    if linked:
        cache.symlink_to("home")
    here = project(tmp_path, cache)
    program = (
        "from clew.settings import load; from clew.packages.owners import Packages\n"
        "print(Packages(load().owners).owners([b'/bin/true']))\n"
    )
    for _ in ("made", "read"):
        recording = here.exec(sys.executable, "-c", program)
        assert b"coreutils" in recording.out
        assert recording.gaps == []
        kept(cache)
        assert paths_in(recording, "/clew/owners") == set()
    other = f"XDG_CACHE_HOME={tmp_path / 'other'}"  # of somebody else: a file like any other
    recording = here.exec("env", other, sys.executable, "-c", program)
    assert str(kept(tmp_path / "other")[0]) in paths_in(recording, "/clew/owners")


def paths_in(recording: Recording, part: str) -> set[str]:
    """All with this in them that were used, made or looked at."""
    looked = {os.fsdecode(look.path or b"") for look in recording.looks()}
    assert looked
    return {path for path in looked | recording.files.keys() if part in path}
