"""Copy the results of earlier tasks between this machine and the bucket, so that a task which ran
on one side can be reused on the other.

The digest of each file is compared with the recorded one as it is copied.
"""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import SCHEME, ArtifactStore, StoredFile
from clew.pipelines.pods.task_documents import PodTaskResult
from clew.pipelines.spec.placeholders import artifact_path
from clew.prov.queries.pipelines.finished_tasks import FinishedTask

MAX_BYTES = 1 << 30
"""Of all outputs of a task: the run waits meanwhile, and to run the task may be faster."""


def upload_outputs(store: ArtifactStore, done: FinishedTask, place: str) -> FinishedTask:
    """The task with its outputs at `place` in the bucket, as if it had run as a Pod there. They are
    files of this machine, unchanged."""
    _check_size(_size_of(one) for several in done.artifacts.values() for one in several)
    stored: dict[str, tuple[StoredFile, ...]] = {}
    for name, several in done.artifacts.items():
        if len(several) != 1:
            raise ClewError(f"its output {name} has {len(several)} artifacts")
        with open(_find_own_file(done, name, artifact_path(several[0])), "rb") as file:
            stored[name] = (store.upload(file, f"{place}/{name}"),)
        _check_digest(stored[name][0], several[0]["digest"])
    result = PodTaskResult(output={}, texts={}, inputs=(), artifacts=stored)
    store.write(f"{place}/{task_documents.RESULT}", task_documents.encode(result))
    return _moved(done, {name: f"{place}/{name}" for name in stored}, place)


def _find_own_file(done: FinishedTask, name: str, path: str) -> str:
    """A task says where its output is, and may have left a link there: only what is in its own
    directory leaves this machine."""
    real = os.path.realpath(path)
    if not Path(real).is_relative_to(os.path.realpath(done.directory)):
        raise ClewError(f"its output {name} is not in its directory")
    return real


def download_outputs(
    store: ArtifactStore, result: PodTaskResult | None, done: FinishedTask, directory: Path
) -> FinishedTask:
    """The task with its outputs in `directory`, as if it had run here. `result`: what it stored."""
    files = {name: result.artifacts[name] for name in done.artifacts} if result else {}
    _check_size(file.size for several in files.values() for file in several)
    draft = directory.with_name(f".{directory.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        for name, several in files.items():
            source = f"{done.directory}/{name}"
            for file in several:
                suffix = file.url.removeprefix(source)
                if not file.url.startswith(source) or ".." in suffix.split("/"):
                    raise ClewError(f"{file.url} is no file of its output {name}")
                _check_digest(store.download(file.url, draft / f"{name}{suffix}"), file.digest)
        draft.rename(directory)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return _moved(
        done, {name: f"{directory}/{name}" for name in done.artifacts}, os.fspath(directory)
    )


def is_in_bucket(done: FinishedTask) -> bool:
    return done.directory.startswith(SCHEME)


def _moved(done: FinishedTask, places: Mapping[str, str], directory: str) -> FinishedTask:
    def move(name: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
        kept = {field: value for field, value in artifact.items() if field != "custom_path"}
        return {**kept, "uri": places[name]}

    artifacts = {
        name: [move(name, artifact) for artifact in several]
        for name, several in done.artifacts.items()
    }
    return replace(done, artifacts=artifacts, directory=directory)


def _size_of(artifact: Mapping[str, Any]) -> int:
    return int(artifact.get("size") or 0)


def _check_size(sizes: Iterable[int]) -> None:
    total = sum(sizes)
    if total > MAX_BYTES:
        raise ClewError(f"its outputs have {total} bytes, more than {MAX_BYTES}")


def _check_digest(file: StoredFile, digest: str) -> None:
    if file.digest != digest:
        raise ClewError(f"{file.url} changed meanwhile")
