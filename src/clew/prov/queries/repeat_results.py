"""Store the result of a repeat, so that lists and pages can show it later.

A server stores the results of the repeats that it was asked for itself, in the same table
(`server.catalogue.repeat_requests`): their rows are there already, and are not changed.
"""

import json
import time
from typing import Any

from msgspec import json as msgspec_json

from clew.documents.executions.repeats import RepeatOptions
from clew.documents.ids import Uid
from clew.prov.graph import Graph

MAX_BYTES = 4 << 20
"""The limit for a stored result; a larger one keeps the first differences only."""
_MAX_DIFFERENCES = 500
_INSERT = """
INSERT INTO repeat_request (id, project, created, state, target, target_uid, began, finished, stop,
    lease, tries, options, output, verdict, result)
VALUES (?, ?, ?, 'done', ?, ?, ?, ?, 0, 0, 0, ?, '', ?, ?) ON CONFLICT DO NOTHING
"""


def store_repeat(
    graph: Graph,
    uid: Uid,
    *,
    target: str,
    target_uid: Uid,
    options: RepeatOptions,
    began: int,
    result: dict[str, Any],
) -> None:
    """`uid`: of the new execution; of a repeated run, a new one. `target`: the execution or run
    that was repeated. `began`: in nanoseconds. Lines of files are left out: they are content, which
    may be secret and belongs in the store alone."""
    shown = shorten_result(_omit_lines(result))
    values = (
        *(uid, graph.project, began, target, target_uid, began, time.time_ns()),
        *(msgspec_json.encode(options).decode(), shown["verdict"], json.dumps(shown)),
    )
    graph.connection.rows(_INSERT, values)


def shorten_result(result: dict[str, Any]) -> dict[str, Any]:
    """The result, with only the first differences if it is too large to be stored."""
    if len(json.dumps(result)) <= MAX_BYTES:
        return result
    shortened = dict(result)
    if "tasks" in result:
        shortened["tasks"] = [_shorten(task) for task in result["tasks"]]
    return _shorten(shortened)


def _omit_lines(result: dict[str, Any]) -> dict[str, Any]:
    found = dict(result)
    if "tasks" in found:
        found["tasks"] = [_omit_lines(task) for task in found["tasks"]]
    if "differences" in found:
        found["differences"] = [
            {name: value for name, value in one.items() if name != "lines"}
            for one in found["differences"]
        ]
    return found


def _shorten(result: dict[str, Any]) -> dict[str, Any]:
    result = _omit_lines(result)
    differences = result.get("differences", [])
    kept = differences[:_MAX_DIFFERENCES]
    warning = f"{len(differences)} differences; the first {len(kept)} are listed"
    if "differences" not in result:
        return result
    return {
        **result,
        "differences": kept,
        "ran": result["ran"][:_MAX_DIFFERENCES],
        "reused": result["reused"][:_MAX_DIFFERENCES],
        "warnings": [*result["warnings"][:_MAX_DIFFERENCES], warning],
    }
