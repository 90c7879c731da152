"""Treat one process and its descendants as an execution of their own, to run it alone.

Files that other processes had made before it began count as initial files. It can run alone if it
got only files, arguments and variables from the rest: data from pipes and sockets is not stored.
"""

from dataclasses import replace

from clew.prov.locators import path_of
from clew.prov.queries.execution_record import Activity, Edge, ExecutionRecord, Version
from clew.prov.queries.formats import STREAM
from clew.replay.compare.entity_names import NETWORK_SCHEMES
from clew.replay.execution_index import ExecutionIndex
from clew.replay.sandbox.initial_files import InitialFiles


def list_subtree(side: ExecutionIndex, process: Activity) -> set[int]:
    """The process, the programs it became, and its descendants."""
    keys = {process.key}
    waiting = [process.key]
    while waiting:
        below = {child.key for child in side.children[waiting.pop()]} - keys
        keys |= below
        waiting += below
    return keys


def can_run_alone(side: ExecutionIndex, process: Activity) -> bool:
    """Whether it got only recorded data from the other processes."""
    if process.exe is None:  # it has its parent's memory
        return False
    inside = list_subtree(side, process)
    if any(source not in inside for key in inside for source in side.sources[key]):
        return False
    used = (version for key in inside for _, version in side.used[key])
    if any(version.locator.startswith(NETWORK_SCHEMES) for version in used):
        return False
    return _stdin_file(process)[1] == 0


def isolate_record(side: ExecutionIndex, process: Activity) -> ExecutionRecord:
    """The record of this process and its descendants."""
    record, inside = side.record, list_subtree(side, process)

    def own(edges: list[Edge]) -> list[Edge]:
        return [edge for edge in edges if edge.activity in inside]

    used, generated, invalidated = map(own, (record.used, record.generated, record.invalidated))
    accessed = {edge.version for edge in (*used, *generated, *invalidated)}
    execution = record.itself._replace(
        command=process.command,
        cwd=process.cwd or record.itself.cwd,
        environment=dict(side.environment(process)),
        started=process.started,
        ended=min(side.end(process), record.itself.ended or side.end(process)),
        status=process.status,
        signal=process.signal,
    )
    return replace(
        record,
        facets={**record.facets, "streams": _streams(process), "pinned": {}},
        activities={
            execution.key: execution,
            **{key: record.activities[key] for key in sorted(inside)},
        },
        versions={
            key: version._replace(found=not side.writers[key] & inside)
            for key, version in record.versions.items()
            if key in accessed
        },
        used=used,
        generated=generated,
        invalidated=invalidated,
        looked=[look for look in record.looked if look.activity in inside],
        informed=[flow for flow in record.informed if {*flow[:2]} <= inside],
        gaps=[gap for gap in record.gaps if gap.activity in inside],
    )


def _stdin_file(process: Activity) -> tuple[str, int]:
    """The file it inherited as standard input, and how far others had read it."""
    for number, _, name, *place in process.facets.get("begun", {}).get("held", ()):
        if number == 0:
            return name, place[0] if place else 0
    return "", 0


def _streams(process: Activity) -> dict[str, dict[str, str]]:
    """Standard input is the inherited file; output is stored, wherever it went."""
    streams = {"stdout": {"kind": "pipe"}, "stderr": {"kind": "pipe"}}
    name, _ = _stdin_file(process)
    if name.startswith("/") and not name.startswith("/dev/"):
        path = path_of(f"file://{name}") or b""
        streams["stdin"] = {"kind": "file", "path": path.decode(errors="replace")}
    return streams


def wrote_inherited(side: ExecutionIndex, process: Activity, version: Version) -> bool:
    """Whether it wrote this through an inherited descriptor: alone, it is its output."""
    if version.locator.startswith(STREAM):
        return True
    inside = list_subtree(side, process)
    edges = (edge for edge in side.record.generated if edge.version == version.key)
    return any(edge.activity in inside and edge.how == "inherited" for edge in edges)


def merge_initial_files(
    side: ExecutionIndex, whole: InitialFiles, own: InitialFiles
) -> InitialFiles:
    """The files of the process, and all other files that the execution had not changed."""
    touched = {
        side.record.versions[edge.version].locator
        for edge in (*side.record.generated, *side.record.invalidated)
    }
    paths = {path_of(locator) for locator in touched}
    still = {path: entry for path, entry in whole.entries.items() if path not in paths}
    return InitialFiles(still).with_changes(dict(own.entries))
