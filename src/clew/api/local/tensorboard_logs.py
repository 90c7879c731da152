"""The TensorBoard logs that an execution or a pipeline run wrote, in a directory of their own.

On one machine they are copied from the store: the same files may have been written again by a later
execution, or be gone by now. On a cluster, no TensorBoard can read the store; there it reads the
volume or the bucket to which they were written.
"""

import os
import secrets
from pathlib import Path

from clew.api.local.project import LocalProject
from clew.disk_reserve import NO_ROOM
from clew.documents.ids import Digest, ExecutionId, Locator, Uid
from clew.errors import ClewError, Full, NoContent, NotFound
from clew.prov.cluster.locators import split_object_locator, split_volume_locator
from clew.prov.graph import Graph
from clew.prov.locators import path_of
from clew.prov.queries.cluster.targets import resolve_cluster_target
from clew.prov.queries.executions import ExecutionRef, find_execution
from clew.prov.queries.files import list_files
from clew.prov.queries.pipelines.runs import find_run, list_run_executions
from clew.store import Store

_MARK = b"tfevents"
"""Part of the names of all event files."""
_MAX_FILES = 10_000


def copy_logs(project: LocalProject, target: str, parent: Path) -> Path:
    """Copy the logs that `target` wrote into a directory in `parent`; returns that. NotFound: it
    wrote none. What was copied before is not copied again."""
    uid, executions = _find_executions(project.graph, target)
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


def find_log_place(graph: Graph, target: str, namespace: str) -> str:
    """The directory of a volume of the namespace, or of a bucket, to which `target` wrote logs:
    `pvc://VOLUME/PATH` or `s3://BUCKET/PATH`. NotFound: it wrote none there."""
    places: dict[str, list[str]] = {}
    for execution in _find_executions(graph, target)[1]:
        for file in list_files(graph, find_execution(graph, execution).key):
            name = file.locator.rpartition("/")[2].encode()
            if file.role == "output" and _MARK in name and (at := _place(file.locator, namespace)):
                places.setdefault(at[0], []).append(os.path.dirname(at[1]))
    if not places:
        raise NotFound(
            f"{target} wrote no TensorBoard logs to a volume of {namespace} or a bucket",
            hint="let it write its logs to one; the page of a run that the server performed itself"
            " draws its curves",
        )
    root, directories = max(places.items(), key=lambda place: len(place[1]))
    return f"{root}/{os.path.commonpath(directories)}".rstrip("/")


def _place(locator: Locator, namespace: str) -> tuple[str, str] | None:
    """The volume or bucket of a file, and the path there."""
    if place := split_volume_locator(locator):
        path = os.fsdecode(place.path).lstrip("/")
        return (f"pvc://{place.claim}", path) if place.namespace == namespace else None
    found = split_object_locator(locator)
    return (f"s3://{found[0]}", found[1]) if found else None


def _find_executions(graph: Graph, target: str) -> tuple[Uid, list[ExecutionId]]:
    """The uid of a run or an execution, and the executions that it consists of."""
    try:
        run = find_run(graph, target)
    except NotFound:
        found = _find_execution(graph, target)
        return found.uid, [ExecutionId(found.uid)]
    return run.uid, list_run_executions(graph, target)


def _find_execution(graph: Graph, target: str) -> ExecutionRef:
    """An execution; of a Pod also by `pod/NS/NAME` or NS/NAME."""
    try:
        return find_execution(graph, target)
    except NotFound:
        pod = f"pod/{target.removeprefix('pod/')}"
        if pod.count("/") != 2 or (found := resolve_cluster_target(graph, pod)) is None:
            raise
        return find_execution(graph, found.label)


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
