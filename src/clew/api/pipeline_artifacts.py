"""The files that runs and tasks produced. An artifact is a file or a directory.

A run, a task and an artifact are named as everywhere: r1, r1/train, r1/train:model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from clew.documents.comparisons.differences import ArtifactDiff, Difference, Verdict
from clew.documents.ids import Digest
from clew.documents.pipelines.runs import Artifact, Task
from clew.errors import NotFound, UsageError

if TYPE_CHECKING:
    from clew.api.project import Project

_NAMED = re.compile(r"(r[1-9]\d{0,15}|latest(?=/))(?:/([^:]+)(?::(.+))?)?", re.DOTALL)
_SMALL = 1 << 20
"""Larger files are compared by digest only (bytes)."""


class ArtifactFile(NamedTuple):
    """A file that belongs to an artifact."""

    version: str
    """Its path in the record."""
    name: str
    """`train/model/weights`: its place in the directory of a run."""
    within: str
    """`weights`: its place in the artifact; empty where that is a file."""
    digest: Digest
    size: int


def is_run(text: str) -> bool:
    """Whether `text` is the id of a run: r2."""
    named = _NAMED.fullmatch(text)
    return named is not None and named[2] is None


def is_artifact(text: str) -> bool:
    named = _NAMED.fullmatch(text)
    return named is not None and named[3] is not None


def is_run_item(text: str) -> bool:
    """Whether it names a run, a task or an artifact."""
    return _NAMED.fullmatch(text) is not None


def task_of(text: str) -> str:
    """The task that made an artifact; any other id unchanged."""
    named = _NAMED.fullmatch(text)
    return f"{named[1]}/{named[2]}" if named and named[3] else text


def list_files(project: Project, text: str) -> list[ArtifactFile]:
    """All files of the artifacts of a run or a task, or of one artifact."""
    named = _NAMED.fullmatch(text)
    assert named is not None
    pipelines = project.pipelines
    tasks = [pipelines.task(task_of(text))] if named[2] else [*pipelines.show(named[1]).tasks]
    found = [
        file
        for task in tasks
        for name, artifacts in task.artifacts.items()
        if named[3] in (None, name)
        for artifact in artifacts
        for file in _files(project, task, artifact)
    ]
    if not found:
        raise NotFound(
            f"no file that {text} made was recorded", hint=f"clew pipeline show {named[1]}"
        )
    return found


def read_artifact(project: Project, text: str) -> Iterator[bytes]:
    """The content of an artifact that is one file; its metadata as JSON if it has no file
    (for example KFP metrics)."""
    task = project.pipelines.task(task_of(text))
    made = task.artifacts.get(text.partition(":")[2], ())
    files = [file for artifact in made for file in _files(project, task, artifact)]
    if len(files) > 1:
        raise UsageError(
            f"{text} is a directory of {len(files)} files", hint=f"clew cat {files[0].version}"
        )
    if made and not files and made[0].metadata:
        document = json.dumps(made[0].metadata, indent=2, ensure_ascii=False)
        return iter([document.encode() + b"\n"])
    return project.chunks(files[0].version if files else text)


def diff(project: Project, a: str, b: str) -> ArtifactDiff:
    """How two artifacts differ, file by file; small texts line by line."""
    from clew.replay.compare.output_comparison import diff_text

    sides = [{one.within: one for one in list_files(project, text)} for text in (a, b)]
    files: list[Difference] = []
    for path in sorted({*sides[0], *sides[1]}):
        then, now = (side.get(path) for side in sides)
        if then is None or now is None:
            kind = "extra" if then is None else "missing"
        elif then.digest == now.digest:
            continue
        else:
            kind = "changed"
        lines: tuple[str, ...] = ()
        if then and now and max(then.size, now.size) <= _SMALL:
            before, after = (project.read(one.version, most=_SMALL) for one in (then, now))
            lines = diff_text(before, after, path)
        shown = path or a.rpartition(":")[2]
        digests = then and then.digest, now and now.digest
        files.append(Difference(path=shown, kind=kind, a=digests[0], b=digests[1], lines=lines))
    verdict: Verdict = "different" if files else "identical"
    return ArtifactDiff(a=a, b=b, verdict=verdict, files=tuple(files))


def _files(project: Project, task: Task, artifact: Artifact) -> list[ArtifactFile]:
    if artifact.version:
        version, digest = artifact.version, artifact.digest or Digest("")
        path = version.partition(":")[2].rpartition("@")[0]
        return [ArtifactFile(version, _name(path), "", digest, artifact.size or 0)]
    place, execution = artifact.custom_path or artifact.uri, task.execution
    if not execution or not place.startswith("/"):
        return []
    return [
        ArtifactFile(
            f"{execution}:{one.path}",
            _name(one.path),
            one.path.removeprefix(f"{place}/"),
            one.digest,
            one.size or 0,
        )
        for one in project.show(execution, detail=True).files or ()
        if one.written and one.digest and one.path.startswith(f"{place}/")
    ]


def _name(path: str) -> str:
    """The path of a file below the directory of a run; the last part of any other path."""
    from clew.pipelines.run_directory import RUNS

    below = path.partition(f"/{RUNS}/")[2].partition("/")[2]
    return below or path.rpartition("/")[2]
