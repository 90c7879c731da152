"""A lineage as one self-contained HTML page: it loads nothing from the network or other files.

`page/` has the HTML, CSS and scripts; this module combines them with the data. File names are
never treated as markup: the JSON is escaped so that nothing in it can end its script element,
and the scripts build elements from text.
"""

import html
import json
from importlib.resources import files
from typing import Any

from clew.cli.lineage.diagram_model import (
    LONGEST_COMMAND,
    Document,
    Point,
    build_points,
    find_targets,
    list_facts,
)
from clew.cli.output import (
    escape,
    format_command,
    format_count,
    format_duration,
    format_size,
    shorten_path,
)

SHORT_COMMAND = 20
PATH_END = 2  # parts of the path of the user's own file that a label shows
_SCRIPTS = ("model.js", "layout.js", "drawing.js", "panels.js", "app.js")


def render(document: Document, *, version: str) -> str:
    """The page as text."""
    points = build_points(document, shorten=shorten_path)
    target_points = find_targets(document, points)
    name = target_points[0].title if target_points else str(document["target"])
    up = document["direction"] != "down"
    heading = f"Where {name} came from" if up else f"What was made from {name}"
    explanation = (
        "Data flows from left to right: from the sources to the result."
        if up
        else "Data flows from left to right: from the file to everything made from it."
    )
    data = {
        "targets": [point.id for point in target_points],
        "direction": document["direction"],
        "explanation": explanation,
        "nodes": [_node(point) for point in points],
        "edges": [
            {"from": point.id, "to": other.id, "kind": kind}
            for point in points
            for kind, other in point.after
        ],
    }
    parts = {
        "title": html.escape(heading),
        "heading": html.escape(heading),
        "subtitle": html.escape(_subtitle(points, version)),
        "style": _read_asset("page.css"),
        "data": _escape_json(json.dumps(data, ensure_ascii=False)),
        "script": "\n".join(map(_read_asset, _SCRIPTS)),
    }
    pieces = _read_asset("page.html").split("@@")
    return "".join(parts[piece] if n % 2 else piece for n, piece in enumerate(pieces))


def _read_asset(name: str) -> str:
    return files("clew.cli.lineage").joinpath("page", name).read_text("utf-8")


def _escape_json(text: str) -> str:
    """Escape JSON so that an HTML parser finds no markup in it; it decodes to the same value."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace").decode()


def _subtitle(points: list[Point], version: str) -> str:
    files_, processes = (
        sum(1 for point in points if point.kind == kind) for kind in ("file", "process")
    )
    executions = len({point.execution for point in points if point.execution})
    return (
        f"{format_count(files_, 'file')}, {format_count(processes, 'process', 'processes')}, "
        f"{format_count(executions, 'execution')} · recorded by Clew {version}"
    )


def _node(point: Point) -> dict[str, Any]:
    facts = list_facts(point)
    bytes_ = point.record.get("size")
    name = _short_title(point)
    if point.where.startswith("/"):  # outside the current directory: show the end of the path
        parts = point.where.split("/")
        name = parts[-1] or point.where
        if point.family not in ("package", "system") and len(parts) > PATH_END + 1:
            name = "/".join(["…", *parts[-PATH_END:]])
    return {
        "id": point.id,
        "kind": point.kind,
        "title": name,
        "sub": _subtitle_of(point),
        "where": point.where,
        "family": point.family,
        "package_name": point.package,
        "mark": point.mark,
        "like": _group_key(point),
        "alone": "://" in point.source,
        "program": _program(point),
        "execution": point.execution,
        "size": bytes_,
        "size_text": format_size(bytes_),
        "about": point.source or point.package or "",
        "facts": facts,
        "text": " ".join([point.kind, point.title, *(value for _, value in facts)]).lower(),
    }


def _subtitle_of(point: Point) -> str:
    if point.kind == "process":
        return " · ".join(
            w for w in (point.short_id, format_duration(point.record.get("seconds"))) if w
        )
    words = [point.execution, format_size(point.record.get("size")), point.source or point.package]
    return " · ".join(word for word in words if word)


def _short_title(point: Point) -> str:
    """A command without the directory of its program, which the details show."""
    words = point.record.get("command")
    if point.kind != "process" or not words or point.record.get("name"):
        return point.title
    text = format_command([_program(point), *words[1:]])
    first, _, rest = text.partition(" ")
    second, more, _ = rest.partition(" ")
    if more and len(first) + len(second) < SHORT_COMMAND:  # prefer whole words
        return f"{first} {second} …"
    return text[:LONGEST_COMMAND]


def _group_key(point: Point) -> str:
    """Points with the same key are drawn as one group."""
    if point.kind == "process":
        return f"process {_program(point)}"
    if point.installed:
        return f"installed {point.family}"
    suffix = point.where.rsplit("/", 1)[-1].rpartition(".")[2]
    return f"{point.kind} {point.family} {suffix}"


def _program(point: Point) -> str:
    words = point.record.get("command") or [point.title]
    return escape(str(words[0]).rsplit("/", 1)[-1])
