"""gc that frees content beside running executions, removals, pushes and pulls.

Whatever comes first, every execution that is left has all its content at the end, also content that
was garbage when a sweep began and was recorded or pulled again meanwhile.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.local.processes import TrackedProject

ROUNDS = 2


@pytest.fixture
def clew(tmp_path: Path) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path)
    yield clew
    clew.stop()


class Load:
    """Threads that work at once; the first failure of one is the failure of all."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._failures.append(error)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    @property
    def over(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def finish(self) -> None:
        for thread in self._threads:
            thread.join()
        if self._failures:
            raise self._failures[0]


def record(clew: TrackedProject, name: str) -> str:
    """An execution that leaves noise, which is not stored anywhere else."""
    return str(clew.shell(f"head -c 500000 /dev/urandom > {name}")["id"])


def test_every_execution_keeps_its_content(tmp_path: Path, clew: TrackedProject) -> None:
    other = TrackedProject(tmp_path / "other")
    pulled = [other.shell(f"head -c 500000 /dev/urandom > pulled{n}")["uid"] for n in range(ROUNDS)]
    here, there = str(tmp_path / "pulls"), str(tmp_path / "pushes")
    other("push", here)
    kept: dict[str, Path] = {}

    def write(writer: int) -> None:
        for number in range(ROUNDS):
            path = clew.folder / f"again{writer}-{number}"
            doomed = record(clew, path.name)
            with clew.opened() as project:
                project.remove([doomed])
            # Its content is garbage now, which this execution reads, and so makes needed again.
            kept[clew.shell(f"cat {path.name} > /dev/null")["id"]] = path

    def push() -> None:
        while not writers.over:
            with clew.opened() as project:
                project.push(there, list(kept))

    def pull() -> None:
        for uid in pulled:
            with clew.opened() as project:
                project.pull(here, [uid])
                project.remove([uid])
                project.pull(here, [uid])

    for number in range(2):  # to be freed whatever the timing is
        record(clew, f"first{number}")
    with clew.opened() as project:
        project.remove(["e1", "e2"])
    freed = 0
    writers, others = Load(), Load()
    for writer in range(2):
        writers.start(lambda writer=writer: write(writer))  # type: ignore[misc]
    others.start(push)
    others.start(pull)
    while not (writers.over and others.over):
        with clew.opened() as project:
            freed += project.gc().bytes
    writers.finish()
    others.finish()

    assert freed > 900_000
    kept |= {uid: other.folder / f"pulled{number}" for number, uid in enumerate(pulled)}
    is_whole(clew, kept)
    with clew.opened() as project:
        project.push(there)
    clew.assert_intact()
    assert clew.leftovers() == []
    fresh = TrackedProject(tmp_path / "fresh")
    fresh("pull", there)
    is_whole(fresh, {uid: path for uid, path in kept.items() if uid in pulled})


def is_whole(clew: TrackedProject, kept: dict[str, Path]) -> None:
    with clew.opened() as project:
        assert project.fsck().problems == ()
        assert {found.state for found in project.executions()} == {"done"}
        for execution, path in kept.items():
            assert project.read(f"{execution}:{path}") == path.read_bytes()
