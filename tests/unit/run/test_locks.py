"""Who runs, who is dead, and who settles what the dead left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from clew import folder as folders
from clew.folder import Folder
from clew.run import locks


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return folders.create(tmp_path)


def test_alive_is_who_holds_its_lock(folder: Folder) -> None:
    assert not locks.alive(folder, "nobody")
    held = locks.hold(folder, "someone")
    assert locks.alive(folder, "someone")
    os.close(held)
    assert not locks.alive(folder, "someone")


def test_two_who_look_do_not_take_each_other_for_the_recorder(folder: Folder) -> None:
    os.close(locks.hold(folder, "dead"))
    wrong = []

    def look() -> None:
        wrong.extend(locks.alive(folder, "dead") for _ in range(2000))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not any(wrong)


def test_the_living_are_not_claimed(folder: Folder) -> None:
    held = locks.hold(folder, "someone")
    assert locks.claim(folder.spool / "someone") is None
    os.close(held)
    claimed = locks.claim(folder.spool / "someone")
    assert claimed is not None
    assert locks.claim(folder.spool / "someone") is None  # one at a time
    assert not locks.alive(folder, "someone")  # and it shows as what it is meanwhile
    os.close(claimed)


def test_what_is_gone_cannot_be_claimed(folder: Folder) -> None:
    assert locks.claim(folder.spool / "nobody") is None


def test_a_new_one_is_never_seen_without_its_lock(folder: Folder) -> None:
    """Somebody who sweeps up dead ones all the time takes nothing from one that begins."""
    import shutil

    over = threading.Event()

    def sweep() -> None:
        while not over.is_set():
            for place in list(folder.spool.iterdir()):
                claimed = locks.claim(place)
                if claimed is not None:
                    shutil.rmtree(place, ignore_errors=True)
                    os.close(claimed)

    thread = threading.Thread(target=sweep)
    thread.start()
    try:
        for number in range(300):
            held = locks.hold(folder, f"x{number}")
            assert locks.alive(folder, f"x{number}")
            assert (folder.spool / f"x{number}" / "lock").exists()
            os.close(held)
    finally:
        over.set()
        thread.join()


def test_only_its_owner_may_look_inside(folder: Folder) -> None:
    os.close(locks.hold(folder, "mine"))
    assert (folder.spool / "mine").stat().st_mode & 0o077 == 0
    assert (folder.spool / "mine" / "lock").stat().st_mode & 0o077 == 0
