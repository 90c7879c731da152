import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.packages.user_cache import read_cached, write_cached

DATA = bytes(range(256)) * 40
MONTHS_AGO = time.time() - 100 * 24 * 3600


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


def only(directory: Path) -> Path:
    [file] = directory.iterdir()
    return file


def test_what_is_kept_is_found_by_its_name_and_key(directory: Path) -> None:
    assert read_cached(directory, "one", "key") is None
    write_cached(directory, "one", "key", DATA)
    assert read_cached(directory, "one", "key") == DATA
    assert read_cached(directory, "one", "another") is None
    assert read_cached(directory, "two", "key") is None


def test_the_cache_is_private(directory: Path) -> None:
    before = os.umask(0)
    try:
        write_cached(directory, "one", "key", DATA)
    finally:
        os.umask(before)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(only(directory).stat().st_mode) == 0o600


@pytest.mark.parametrize("at", [0, 31, 32, 5000, -1])
def test_a_byte_that_changed_makes_it_nothing(directory: Path, at: int) -> None:
    write_cached(directory, "one", "key", DATA)
    damaged = bytearray(only(directory).read_bytes())
    damaged[at] ^= 1
    only(directory).write_bytes(damaged)
    assert read_cached(directory, "one", "key") is None
    write_cached(directory, "one", "key", DATA)
    assert read_cached(directory, "one", "key") == DATA


@pytest.mark.parametrize("size", [0, 31, 32, 5000])
def test_one_that_was_cut_short_is_nothing(directory: Path, size: int) -> None:
    write_cached(directory, "one", "key", DATA)
    os.truncate(only(directory), size)
    assert read_cached(directory, "one", "key") is None


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_one_that_others_may_write_is_not_believed(directory: Path, mode: int) -> None:
    write_cached(directory, "one", "key", DATA)
    only(directory).chmod(mode)
    assert read_cached(directory, "one", "key") is None
    only(directory).chmod(0o644)
    assert read_cached(directory, "one", "key") == DATA


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_a_cache_of_another_user_is_ignored(directory: Path) -> None:
    write_cached(directory, "one", "key", DATA)
    os.chown(only(directory), 65534, -1)
    assert read_cached(directory, "one", "key") is None
    os.chown(only(directory), 0, -1)
    assert read_cached(directory, "one", "key") == DATA


def _link(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")


def _pipe(place: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _directory(place: Path) -> None:
    place.unlink()
    place.mkdir()


@pytest.mark.parametrize(
    ("instead", "then"),
    [(_link, DATA), (_pipe, DATA), (_directory, None)],  # nothing can be put in a directory's place
)
def test_a_cache_must_be_a_regular_file(
    directory: Path, instead: Callable[[Path], None], then: bytes | None
) -> None:
    write_cached(directory, "one", "key", DATA)
    instead(only(directory))
    assert read_cached(directory, "one", "key") is None
    write_cached(directory, "one", "key", DATA)
    assert read_cached(directory, "one", "key") == then
    assert not list(directory.glob("*.kept.*"))


def test_a_place_where_nothing_can_be_written_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file" / "below", Path("/proc/clew")):
        write_cached(directory, "one", "key", DATA)
        assert read_cached(directory, "one", "key") is None


def test_a_full_disk_leaves_no_partial_cache(directory: Path) -> None:
    directory.mkdir(parents=True)
    program = """if True:
        import resource, sys
        from pathlib import Path
        from clew.packages.user_cache import write_cached
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        write_cached(Path(sys.argv[1]), "one", "key", bytes(10000))
    """
    subprocess.run([sys.executable, "-c", program, directory], check=True)
    assert list(directory.iterdir()) == []


def test_the_last_few_of_a_name_stay(directory: Path) -> None:
    write_cached(directory, "two", "key", DATA)
    for number in range(6):
        write_cached(directory, "one", str(number), DATA)
        for file in directory.iterdir():  # each is a minute older than the next
            past = file.stat().st_mtime - 60
            os.utime(file, (past, past))
    kept = [number for number in range(6) if read_cached(directory, "one", str(number))]
    assert kept == [3, 4, 5]
    assert read_cached(directory, "two", "key") == DATA


def test_what_is_old_goes_and_what_is_not_ours_stays(directory: Path) -> None:
    write_cached(directory, "one", "key", DATA)
    left = directory / f"{only(directory).name}.0123"  # of somebody who was killed
    left.write_bytes(b"half of")
    for name in ("photograph", "two-photograph"):
        (directory / name).write_text("dear")
    for file in directory.iterdir():
        os.utime(file, (MONTHS_AGO, MONTHS_AGO))
    write_cached(directory, "two", "key", DATA)
    assert read_cached(directory, "one", "key") is None
    assert read_cached(directory, "two", "key") == DATA
    assert not left.exists()
    assert len(list(directory.iterdir())) == 3


def test_many_at_once_never_see_half_of_one(directory: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from clew.packages.user_cache import write_cached, read_cached
        data = bytes([int(sys.argv[2])]) * 300_000
        for n in range(60):
            write_cached(Path(sys.argv[1]), "one", "key", data)
            # Whoever renamed last is found: never nothing, never a mixture.
            found = read_cached(Path(sys.argv[1]), "one", "key")
            assert found and len(found) == len(data) and len(set(found)) == 1, n
    """
    words = [sys.executable, "-c", program, str(directory)]
    writers = [subprocess.Popen([*words, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    assert len(list(directory.iterdir())) == 1
