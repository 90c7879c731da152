"""Finished tasks are freed: a run of a thousand tasks needs little more memory than one of ten."""

import gc
from pathlib import Path

import pytest
from tests.local.programs.compiling import HERE

import clew
from clew.pipelines.tasks.attempt import ForkedAttempt
from clew.run.session.forked_task import ForkedTask
from clew.run.session.worker_session import WorkerSession


def there() -> int:
    return sum(
        isinstance(one, ForkedAttempt | ForkedTask | WorkerSession) for one in gc.get_objects()
    )


def test_recorded_tasks_are_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not until somebody looks for what only knows of each other, either."""
    monkeypatch.chdir(tmp_path)
    counts: list[int] = []
    gc.collect()
    gc.disable()
    try:
        with clew.init(tmp_path) as project:
            document = project.pipelines.run(
                HERE / "talking.py",
                {"folder": str(tmp_path), "kind": "brief"},
                jobs=1,
                on_host=True,
                watch=lambda _: counts.append(there()),
            )
        after = there()
    finally:
        gc.enable()
    assert document.state == "succeeded"
    assert max(counts) > 0
    assert after == 0
