"""Who runs, who is dead, and who settles what the dead left."""

import os
import threading
from pathlib import Path

import pytest

from clew import project_directory as directories
from clew.project_directory import ProjectDirectory
from clew.run import spool_directories
from clew.run.spool_directories import SpoolDirectory


@pytest.fixture
def directory(tmp_path: Path) -> ProjectDirectory:
    return directories.create(tmp_path)


def leave_spool(directory: ProjectDirectory, uid: str) -> None:
    """Leave the spool of a recorder that was killed."""
    spool = SpoolDirectory(directory, uid)
    spool.needed = True
    spool.close()


def test_alive_is_who_holds_its_lock(directory: ProjectDirectory) -> None:
    assert not spool_directories.is_alive(directory, "nobody")
    spool = SpoolDirectory(directory, "someone")
    assert spool_directories.is_alive(directory, "someone")
    spool.close()
    assert not spool_directories.is_alive(directory, "someone")


def test_two_who_look_do_not_take_each_other_for_the_recorder(directory: ProjectDirectory) -> None:
    leave_spool(directory, "dead")
    wrong = []

    def look() -> None:
        wrong.extend(spool_directories.is_alive(directory, "dead") for _ in range(2000))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(wrong)


def test_the_living_are_not_claimed(directory: ProjectDirectory) -> None:
    spool = SpoolDirectory(directory, "someone")
    assert spool_directories.claim_killed(spool.path) is None
    spool.needed = True
    spool.close()
    claimed = spool_directories.claim_killed(directory.spool / "someone")
    assert claimed is not None
    assert spool_directories.claim_killed(directory.spool / "someone") is None  # one at a time
    assert not spool_directories.is_alive(
        directory, "someone"
    )  # and it shows as what it is meanwhile
    os.close(claimed)


def test_what_is_gone_cannot_be_claimed(directory: ProjectDirectory) -> None:
    assert spool_directories.claim_killed(directory.spool / "nobody") is None


def test_a_new_one_is_never_seen_without_its_lock(directory: ProjectDirectory) -> None:
    """Somebody who sweeps up dead ones all the time takes nothing from one that begins."""
    import shutil

    over = threading.Event()

    def sweep() -> None:
        while not over.is_set():
            for place in list(directory.spool.iterdir()):
                claimed = spool_directories.claim_killed(place)
                if claimed is not None:
                    shutil.rmtree(place, ignore_errors=True)
                    os.close(claimed)

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for number in range(300):
            spool = SpoolDirectory(directory, f"x{number}")
            assert spool_directories.is_alive(directory, f"x{number}")
            assert (directory.spool / f"x{number}" / "lock").exists()
            spool.close()
    finally:
        over.set()
        thread.join()


def test_only_its_owner_may_look_inside(directory: ProjectDirectory) -> None:
    leave_spool(directory, "mine")
    assert (directory.spool / "mine").stat().st_mode & 0o077 == 0
    assert (directory.spool / "mine" / "lock").stat().st_mode & 0o077 == 0
