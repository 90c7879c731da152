"""A lineage as one page that needs nothing else: no network, no other file.

The page's own parts lie in `page/`; this module puts them and the data together. Whatever a
file may be called, it stays data: the JSON is escaped so that nothing in it can end the
script element that carries it, and the page builds its elements from text, never from markup.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

from clew.cli.lineage.drawing import LONGEST_COMMAND, Document, Point, facts, shape, targets
from clew.cli.output import clean, command_line, duration, nearest, size

BRIEF = 20
_SCRIPTS = ("model.js", "layout.js", "drawing.js", "panels.js", "app.js")


def render(document: Document, *, version: str) -> str:
    """The whole page as text."""
    points = shape(document, near=nearest)
    aims = targets(document, points)
    name = aims[0].title if aims else str(document["target"])
    up = document["direction"] != "down"
    heading = f"Where {name} came from" if up else f"What {name} went into"
    explanation = (
        "Data flows from left to right: from the first sources to the result."
        if up
        else "Data flows from left to right: from the file to all that was made of it."
    )
    data = {
        "targets": [point.id for point in aims],
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
        "style": _part("page.css"),
        "data": _inert(json.dumps(data, ensure_ascii=False)),
        "script": "\n".join(map(_part, _SCRIPTS)),
    }
    pieces = _part("page.html").split("@@")
    return "".join(parts[piece] if n % 2 else piece for n, piece in enumerate(pieces))


def _part(name: str) -> str:
    return files("clew.cli.lineage").joinpath("page", name).read_text("utf-8")


def _inert(text: str) -> str:
    """JSON that no HTML parser can mistake for markup; it reads back the same."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace").decode()


def _subtitle(points: list[Point], version: str) -> str:
    files_, processes = (
        sum(1 for point in points if point.kind == kind) for kind in ("file", "process")
    )
    executions = len({point.execution for point in points if point.execution})
    return (
        f"{_count(files_, 'file')}, {_count(processes, 'process', 'processes')}, "
        f"{_count(executions, 'execution')} · recorded by Clew {version}"
    )


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _node(point: Point) -> dict[str, Any]:
    told = facts(point)
    bytes_ = point.record.get("size")
    name = _brief(point)
    if point.where.startswith("/"):  # far from here: its own name says most
        name = point.where.rsplit("/", 1)[-1] or point.where
    return {
        "id": point.id,
        "kind": point.kind,
        "title": name,
        "sub": _sub(point),
        "where": point.where,
        "family": point.family,
        "package_name": point.package,
        "mark": point.mark,
        "like": _like(point),
        "alone": bool(point.source),
        "program": _program(point),
        "execution": point.execution,
        "size": bytes_,
        "size_text": size(bytes_),
        "about": point.source or point.package or "",
        "facts": told,
        "text": " ".join([point.kind, point.title, *(value for _, value in told)]).lower(),
    }


def _sub(point: Point) -> str:
    if point.kind == "process":
        return " · ".join(w for w in (point.id, duration(point.record.get("seconds"))) if w)
    words = [point.execution, size(point.record.get("size")), point.source or point.package]
    return " · ".join(word for word in words if word)


def _brief(point: Point) -> str:
    """A command without the folder of its program: that is in the details."""
    words = point.record.get("command")
    if point.kind != "process" or not words or point.record.get("name"):
        return point.title
    said = command_line([_program(point), *words[1:]])
    first, _, rest = said.partition(" ")
    second, more, _ = rest.partition(" ")
    if more and len(first) + len(second) < BRIEF:  # whole words, where they say enough
        return f"{first} {second} …"
    return said[:LONGEST_COMMAND]


def _like(point: Point) -> str:
    """What a point must share with others to stand in one group with them."""
    if point.kind == "process":
        return f"process {_program(point)}"
    if point.installed:
        return f"installed {point.family}"
    suffix = point.where.rsplit("/", 1)[-1].rpartition(".")[2]
    return f"{point.kind} {point.family} {suffix}"


def _program(point: Point) -> str:
    words = point.record.get("command") or [point.title]
    return clean(str(words[0]).rsplit("/", 1)[-1])
