"""Check on this machine that what earlier tasks depended on, and what they made, is unchanged."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew import db
from clew.documents.ids import ExecutionId
from clew.pipelines.run_directory import RUNS
from clew.pipelines.runner.task_reuse import Check, TaskReuse
from clew.pipelines.spec.placeholders import artifact_path
from clew.pipelines.spec.values import Artifact
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.queries.pipelines.finished_tasks import FinishedTask
from clew.replay.reuse.reuse_types import ReuseCheck, TaskVariables
from clew.settings import Settings
from clew.store import Store

if TYPE_CHECKING:
    from clew.replay.reuse.task_reuse_check import ReuseChecker


class LocalArtifacts:
    """The files that the tasks of one run find."""

    def __init__(self, reuse: TaskReuse) -> None:
        self._reuse = reuse

    @cached_property
    def _checker(self) -> ReuseChecker:
        """Loaded when needed: a pipeline that runs for the first time does not wait for it."""
        from clew.replay.reuse.task_reuse_check import ReuseChecker

        return ReuseChecker(self._reuse.graph, self._reuse.store)

    def files_changed(self) -> None:
        """Check files again: a task has run, and may have changed any."""
        if "_checker" in vars(self):
            self._checker.changed()

    def check_facts(self, now: TaskVariables) -> Check:
        """Check all recorded facts, against these variables and the files as they are now."""
        return lambda done: self._checker.holds(done.execution, now, _is_given(done))

    def check_outputs(self, done: FinishedTask) -> ReuseCheck:
        """Check that the outputs of a container task, which sees only its inputs, are unchanged."""
        outputs = [artifact for several in done.artifacts.values() for artifact in several]
        for artifact in outputs:
            digest = self._digest(Path(artifact_path(artifact)))
            if isinstance(digest, dict):
                return ReuseCheck(f"what was in {artifact['uri']} is not known")
            if digest != artifact["digest"]:
                return ReuseCheck(f"{artifact['uri']}, which it made, changed")
        return ReuseCheck(None, len(outputs) + 1)

    def identify(self, artifact: Artifact) -> Any:
        """As `pods.pod_reuse.StoredArtifacts.identify` does in a bucket."""
        found = self._digest(Path(str(artifact.get("custom_path") or artifact["uri"])))
        if isinstance(found, dict):
            return [[f"/{name}", digest] for name, digest in sorted(found.items())]
        return found and [["", found]]

    def _digest(self, path: Path) -> Any:
        """The digest of a file; of a directory, those of its files; None if it is not local."""
        if not path.is_absolute():
            return None
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if not file.is_dir())
            return {
                os.fspath(file.relative_to(path)): self._checker.digest(os.fsencode(file))
                for file in files
            }
        return self._checker.digest(os.fsencode(path))


def list_facts(
    directory: ProjectDirectory, settings: Settings, execution: ExecutionId | None
) -> list[dict[str, str]]:
    """The facts that the execution of a task depended on, beside its declared inputs."""
    if execution is None:
        return []
    from clew.replay.reuse.task_reuse_check import ReuseChecker

    with (
        db.connect(directory.graph, address=settings.graph) as connection,
        Store(directory.store) as store,
    ):
        return ReuseChecker(Graph(connection, directory.uid), store).list_dependencies(execution)


def _is_given(done: FinishedTask) -> Callable[[bytes], bool]:
    """Tells which paths the task was given: its directory, the directories of its run above that,
    and its declared inputs."""
    runs = (
        os.fsencode(done.directory).partition(b"/" + RUNS.encode() + b"/")[0] + b"/" + RUNS.encode()
    )
    given = [os.fsencode(done.directory), *(os.fsencode(path) for path in done.inputs)]

    def is_given(path: bytes) -> bool:
        if path.startswith(runs) and any(below.startswith(path + b"/") for below in given):
            return True
        return any(path == above or path.startswith(above + b"/") for above in given)

    return is_given
