"""Find an earlier run of a cell that would have the same result now.

In two steps, as for tasks and processes (decision 5): a key, of the code and the environment, finds
earlier runs; the first one of which every variable that it could read, every state of the process
and every recorded fact about files is the same now is reused. When in doubt, the cell runs.

Variables are pickles, and a pickle is code. So only cells that this project recorded itself are
reused, never those of a record that was made elsewhere.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew import db, project_directory
from clew.documents.ids import Digest, Uid
from clew.errors import ClewError
from clew.notebooks.cell_events import CELL_PROGRAM, OUTPUTS, VARIABLES, cell_facet
from clew.notebooks.messages import Begin
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.prov.locators import stream_locator
from clew.prov.queries.execution_record import load_record
from clew.prov.queries.formats import execution_id
from clew.prov.queries.same_command import find_same_command
from clew.replay.reuse import output_restore
from clew.replay.reuse.input_check import InputCheck
from clew.replay.reuse.previous_executions import PreviousExecution
from clew.replay.reuse.subtree import Dependency, NotReusable, Output, Subtree
from clew.replay.reuse.task_reuse_check import HostFiles
from clew.settings import Settings
from clew.store import Store

_HOST_ROOT = b"/"


class FoundCell(Struct, frozen=True):
    """An earlier run of a cell that holds now."""

    execution: Uid
    shown: str
    document: dict[str, Any]
    variables: Digest | None
    outputs: Digest | None
    subtree: Subtree
    times: dict[int, int]
    intact: bool
    """What it wrote is still there."""


class CellMemo:
    """The earlier cells of one project."""

    def __init__(self, directory: ProjectDirectory, settings: Settings) -> None:
        self._directory = directory
        self._settings = settings
        self._trusted = project_directory.is_accepted(directory, settings)

    def find(self, begin: Begin, key: str) -> FoundCell | str:
        """The latest earlier run that holds; or why there is none."""
        if begin.never is not None:
            return begin.never
        if not self._trusted:
            return "the project came from elsewhere (clew init --trust accepts it)"
        address = self._settings.graph
        with (
            db.connect(self._directory.graph, address=address) as connection,
            Store(self._directory.store) as store,
        ):
            graph = Graph(connection, self._directory.uid, signers=self._settings.config)
            why: str | None = None
            for uid in _find_candidates(graph, key):
                checked = _Check(graph, store, uid, begin).check()
                if isinstance(checked, FoundCell):
                    return checked
                why = why or checked
        return why or "its code is new"

    def restore(
        self, found: FoundCell, spool: Path, cell: str, *, cells_ran: bool
    ) -> dict[str, str] | str:
        """Bring back the files that it wrote, and put its variables and outputs into the spool;
        the answer says where, or why that is not possible."""
        with Store(self._directory.store) as store:
            paths = {}
            for name, digest in ((VARIABLES, found.variables), (OUTPUTS, found.outputs)):
                if digest is None:
                    return f"its {name} are not stored"
                path = spool / f"{cell}.{name}"
                with path.open("wb") as file:
                    file.writelines(store.read(digest))
                paths[name] = str(path)
            if not found.intact:
                if not output_restore.can_restore(found.subtree, _HOST_ROOT):
                    return "the directory of a file that it wrote is gone"
                keep: output_restore.MapTime = output_restore.keep_times
                if cells_ran:  # newer than what they wrote
                    keep = output_restore.renew_times(found.subtree, found.times)
                output_restore.restore_outputs(found.subtree, _HOST_ROOT, store.read, {}, keep)
        return paths


def _drop_replaced(subtree: Subtree, document: Mapping[str, Any], umask: str) -> Subtree:
    """Without the dependencies on files that the cell writes from their beginning, whether they are
    there or not."""
    replaced = {str(path).encode() for path in document["replaced"]}
    new = f"{0o100666 & ~int(umask or '0', 8):o}"  # the mode of a file that it would create

    def matters(one: Dependency) -> bool:
        if one.path not in replaced:
            return True
        return (one.kind, one.answer) not in (("absent", "ENOENT"), ("present", new))

    return replace(subtree, dependencies=[d for d in subtree.dependencies if matters(d)])


def _is_intact(files: HostFiles, path: bytes, left: Output) -> bool:
    """Whether an output is as the cell left it."""
    try:
        status = files.lstat(path)
    except OSError:
        return left.kind == "gone"
    if left.kind == "directory":
        return stat.S_ISDIR(status.st_mode)
    if left.kind != "file" or left.version is None:
        return False
    same = (stat.S_IMODE(status.st_mode), status.st_size) == (left.mode, left.version.size)
    return same and files.digest(path, status) == left.version.digest


def _find_candidates(graph: Graph, key: str) -> Iterator[Uid]:
    for uid, _ in find_same_command(graph, CELL_PROGRAM, (key,), "", believed=Uid("")):
        if not graph.made_elsewhere(uid):
            yield uid


class _Check:
    """Compares one earlier run with the present."""

    def __init__(self, graph: Graph, store: Store, uid: Uid, begin: Begin) -> None:
        self._graph = graph
        self._store = store
        self._uid = uid
        self._begin = begin

    def check(self) -> FoundCell | str:
        try:
            record = load_record(self._graph, self._uid)
            execution = PreviousExecution(record, self._names)
            document = cell_facet(record.facets)
            if document is None:
                return "its record is incomplete"
            shown = execution_id(record.execution.number)
            why = document["unsaved"] or find_difference(document, self._begin)
            if why is not None:
                return str(why) if document["unsaved"] else f"{why} since {shown}"
            subtree = execution.subtree(next(a for a in record.processes if a.number == 1))
        except NotReusable as why:
            return str(why)
        except (ClewError, StopIteration):
            return "its record is gone"
        files = HostFiles(self._store)
        needed = _drop_replaced(subtree, document, str(record.facets.get("umask", "")))
        check = InputCheck(needed, files, self._names, None)
        different = check.find_difference()
        if different is not None:
            return f"{different} since {shown}"
        return FoundCell(
            execution=self._uid,
            shown=shown,
            document=document,
            variables=self._digest(record.lines, VARIABLES),
            outputs=self._digest(record.lines, OUTPUTS),
            subtree=subtree,
            times=check.times,
            intact=all(_is_intact(files, path, left) for path, left in subtree.outputs.items()),
        )

    def _digest(self, lines: Mapping[Any, Any], name: str) -> Digest | None:
        line = lines.get(stream_locator(self._uid, name), ())
        return next((version.digest for version in line if version.stored), None)

    def _names(self, digest: Digest) -> list[bytes]:
        return self._store.read_whole(digest).split(b"\0")


def find_difference(document: Mapping[str, Any], begin: Begin) -> str | None:
    """The first variable or state of the process that is not as in the earlier run."""
    return (
        _find_variable(document["reads"], begin.reads)
        or _find_shared(document["needs"], {**begin.reads, **begin.shared})
        or _find_state(document["before"], document["process"], begin.process)
    )


def _find_variable(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    for name in sorted({*then, *now}):
        if name not in then:
            return f"its input {name} is new" if "," not in name else _shares(name)
        if name not in now:
            return f"its input {name} is gone" if "," not in name else _shares(name)
        if then[name] != now[name]:
            return f"its input {name} changed"
    return None


def _find_shared(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    for name in sorted(then):
        if then[name] != now.get(name):
            return _shares(name)
    return None


def _shares(names: str) -> str:
    return f"what {names.replace(',', ' and ')} share changed"


def _find_state(
    then: Mapping[str, str], after: Mapping[str, str], now: Mapping[str, str]
) -> str | None:
    """States that the cell did not have then do not matter, unless it made them itself."""
    for name in sorted({*then, *(name for name in now if name in after)}):
        random = name.startswith("the random state")
        if random and name not in after:
            continue  # the cell took no random number from it
        if then.get(name) != now.get(name):
            return f"{name} changed"
    return None
