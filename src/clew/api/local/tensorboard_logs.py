"""The TensorBoard logs that an execution or a pipeline run wrote, in a directory of their own.

They are copied from the store: the same files may have been written again by a later execution, or
be gone by now.
"""

import os
import secrets
from pathlib import Path

from clew.api.local.project import LocalProject
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.errors import ClewError, Full, NoContent, NotFound
from clew.prov.locators import path_of
from clew.prov.queries.executions import find_execution
from clew.prov.queries.files import list_files
from clew.prov.queries.pipelines.runs import find_run, list_run_executions
from clew.reserve_file import NO_ROOM
from clew.store import Store

_MARK = b"tfevents"
"""Part of the names of all event files."""
_MAX_FILES = 10_000


def copy_logs(project: LocalProject, target: str, parent: Path) -> Path:
    """Copy the logs that `target` wrote into a directory in `parent`; returns that. NotFound: it
    wrote none. What was copied before is not copied again."""
    uid, executions = _find_executions(project, target)
    found = _list_logs(project, executions)
    if not found:
        raise NotFound(
            f"{target} wrote no TensorBoard logs",
            hint="write some, for example with SummaryWriter or the callback of Keras",
        )
    directory = parent / uid
    common = os.path.commonpath([os.path.dirname(path) for path in found])
    with Store(project.directory.store) as store:
        stored = {path: digest for path, digest in found.items() if store.has(digest)}
        if not stored:
            raise NoContent(
                f"the TensorBoard logs of {target} are not stored",
                hint="open their directory instead, if it still exists",
            )
        for path, digest in stored.items():
            inner = os.fsdecode(os.path.relpath(path, common))
            try:
                _copy(store, digest, directory / inner)
            except OSError as error:
                kind = Full if error.errno in NO_ROOM else ClewError
                raise kind(f"{inner} cannot be copied: {error.strerror}") from error
    return directory


def _find_executions(project: LocalProject, target: str) -> tuple[Uid, list[ExecutionId]]:
    """The uid of a run or an execution, and the executions that it consists of."""
    graph = project.graph
    try:
        run = find_run(graph, target)
    except NotFound:
        found = find_execution(graph, target)
        return found.uid, [ExecutionId(found.uid)]
    return run.uid, list_run_executions(graph, target)


def _list_logs(project: LocalProject, executions: list[ExecutionId]) -> dict[bytes, Digest]:
    """The digests of the event files that executions left, by their paths."""
    found: dict[bytes, Digest] = {}
    for execution in executions:
        for file in list_files(project.graph, find_execution(project.graph, execution).key):
            path = path_of(file.locator)
            digest = file.left.digest
            if file.role == "output" and path and digest and _MARK in path.rpartition(b"/")[2]:
                found[os.path.normpath(path)] = digest  # a record from elsewhere may contain `..`
    return dict(list(found.items())[:_MAX_FILES])


def _copy(store: Store, digest: Digest, to: Path) -> None:
    if to.exists() and to.stat().st_size == store.size(digest):
        return
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = to.with_name(f".{secrets.token_hex(8)}.draft")
    try:
        with draft.open("xb") as file:
            for chunk in store.read(digest):
                file.write(chunk)
        draft.replace(to)
    finally:
        draft.unlink(missing_ok=True)
