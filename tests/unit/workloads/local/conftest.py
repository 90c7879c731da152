"""A project, and its back end with real processes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from clew import project_directory
from clew.project_directory import ProjectDirectory
from clew.workloads.local.local_backend import LocalBackend

StartBackend = Callable[[], LocalBackend]


@pytest.fixture
def directory(tmp_path: Path) -> ProjectDirectory:
    return project_directory.create(tmp_path / "project")


@pytest.fixture
def start_backend(directory: ProjectDirectory) -> Iterator[StartBackend]:
    """Starts the back end of the project; ends it after the test, if the test did not."""

    def close(backend: LocalBackend) -> None:
        backend.close()  # looked up now: a test may have closed it

    with ExitStack() as ends:

        def start() -> LocalBackend:
            backend = LocalBackend(directory)
            backend.start()
            ends.callback(close, backend)
            return backend

        yield start
