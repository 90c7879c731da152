"""Events of a run while the database was away, kept in `.clew/pending` until it is folded.

The process that runs a pipeline has it in memory as well, and removes the files when it has folded
it. The files are for the case that it is killed first: the next process that resumes the run folds
them, and so runs no finished task again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clew import db
from clew.errors import ClewError, NoDatabase
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent, Ended, from_batch, to_batch
from clew.prov.graph import Graph
from clew.settings import Settings, machine_id


def write(directory: ProjectDirectory, run: str, events: Sequence[AnyEvent]) -> Path:
    """Keep events of a run; the answer is the file."""
    directory.pending.mkdir(mode=0o700, exist_ok=True)
    file = directory.pending / f"{run}.{time.time_ns()}"
    draft = file.with_name(f"{file.name}.draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(to_batch(list(events)))
    return draft.rename(file)


def fold(directory: ProjectDirectory, settings: Settings, run: str) -> None:
    """Fold what was kept of a run that no process is at."""
    kept = [path for path in directory.pending.glob(f"{run}.*") if path.suffix[1:].isdigit()]
    if not kept:
        return
    with db.connect(directory.graph, address=settings.graph) as connection:
        graph = Graph(connection, directory.uid)
        for file in sorted(kept, key=lambda path: int(path.suffix[1:])):
            events = from_batch(file.read_bytes())
            ends = [one for one in events if lacks_files(one)]
            graph.fold([one for one in events if not lacks_files(one)])
            machine = machine_id(settings)
            graph.fold([with_files(graph, one, machine) for one in ends])
            file.unlink()


def lacks_files(event: AnyEvent) -> bool:
    """Whether this is the end of a task, and its artifacts are still to be completed."""
    return isinstance(event, Ended) and any(
        "digest" not in one for found in event.facets.get("artifacts", {}).values() for one in found
    )


def with_files(graph: Graph, end: AnyEvent, machine: str) -> AnyEvent:
    """The end of a task whose execution is folded: each artifact gets what that knows of its
    file."""
    if not isinstance(end, Ended) or not lacks_files(end):
        return end
    executions = end.facets["executions"]
    last = executions[-1] if executions else None
    artifacts = {
        name: [_with_file(graph, one, last, machine) for one in found]
        for name, found in end.facets["artifacts"].items()
    }
    return replace(end, facets={**end.facets, "artifacts": artifacts})


def _with_file(
    graph: Graph, one: Mapping[str, Any], execution: str | None, machine: str
) -> dict[str, Any]:
    from clew.prov.queries.targets import resolve_target  # none waits for it before it runs

    path = str(one.get("custom_path") or one["uri"])
    found = None
    if execution and path.startswith("/"):
        try:
            found = resolve_target(
                graph,
                f"{execution}:{path}",
                machine=machine,
                locate=os.path.realpath,
                digest_of=lambda _: None,
            )
        except NoDatabase:
            raise
        except ClewError:  # it was not recorded, or is no single file
            found = None
    return {
        **one,
        "digest": found.digest if found else None,
        "size": found.size if found else None,
        "version": found.label if found else None,
    }
