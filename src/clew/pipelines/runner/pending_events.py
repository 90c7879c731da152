"""Events of a run on disk, in `.clew/pending`, while the database is away.

The process that performs the run has them in memory too, and removes the files when it has folded
them. If it is killed first, the next process that resumes the run folds the files, so that no
finished task runs again.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from clew import db
from clew.documents.ids import Uid
from clew.errors import ClewError, NoDatabase
from clew.project_directory import ProjectDirectory
from clew.prov.events import AnyEvent, Ended, from_batch, to_batch
from clew.prov.graph import Graph
from clew.settings import Settings, machine_id


def write_events(directory: ProjectDirectory, run: Uid, events: Sequence[AnyEvent]) -> Path:
    """Write events of a run to a new file, completely or not at all."""
    directory.pending.mkdir(mode=0o700, exist_ok=True)
    file = directory.pending / f"{run}.{time.time_ns()}"
    draft = file.with_name(f"{file.name}.draft")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(to_batch(list(events)))
    return draft.rename(file)


def fold_pending(directory: ProjectDirectory, settings: Settings, run: Uid) -> None:
    """Fold the files of a run that no process performs, and remove them."""
    files = [path for path in directory.pending.glob(f"{run}.*") if path.suffix[1:].isdigit()]
    if not files:
        return
    machine = machine_id(settings)
    with db.connect(directory.graph, address=settings.graph) as connection:
        graph = Graph(connection, directory.uid)
        for file in sorted(files, key=lambda path: int(path.suffix[1:])):
            events = from_batch(file.read_bytes())
            graph.fold([event for event in events if not is_incomplete(event)])
            ends = [event for event in events if is_incomplete(event)]
            graph.fold([complete_artifacts(graph, end, machine) for end in ends])
            file.unlink()


def is_incomplete(event: AnyEvent) -> bool:
    """Whether this is the end of a task with artifacts that have no digest yet."""
    return isinstance(event, Ended) and any(
        "digest" not in artifact
        for artifacts in event.facets.get("artifacts", {}).values()
        for artifact in artifacts
    )


def complete_artifacts(graph: Graph, end: AnyEvent, machine: str) -> AnyEvent:
    """Add digests and sizes to the end of a task, from its execution, which must be folded."""
    if not isinstance(end, Ended) or not is_incomplete(end):
        return end
    executions = end.facets["executions"]
    last = executions[-1] if executions else None
    completed = {
        name: [_complete_artifact(graph, artifact, last, machine) for artifact in artifacts]
        for name, artifacts in end.facets["artifacts"].items()
    }
    return replace(end, facets={**end.facets, "artifacts": completed})


def _complete_artifact(
    graph: Graph, artifact: Mapping[str, Any], execution: str | None, machine: str
) -> dict[str, Any]:
    from clew.prov.queries.targets import resolve_target  # late: the first task need not wait

    path = str(artifact.get("custom_path") or artifact["uri"])
    version = None
    if execution and path.startswith(("/", "s3://")):
        try:
            version = resolve_target(
                graph,
                f"{execution}:{path}",
                machine=machine,
                locate=os.path.realpath,
                digest_of=lambda _: None,
            )
        except NoDatabase:
            raise
        except ClewError:  # it was not recorded, or is a directory
            version = None
    return {
        **artifact,
        "digest": version.digest if version else None,
        "size": version.size if version else None,
        "version": version.label if version else None,
    }
