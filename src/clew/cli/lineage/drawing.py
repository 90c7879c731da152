"""What the drawings have in common: nodes with a caption and their neighbours.

Edges of the `trace` document run the way data flows, from what was there before to what came
of it; a drawing adds short words for each node and the two directions to walk in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.cli.output import clean, command_line, duration, size

Document = Mapping[str, Any]

LONGEST_COMMAND = 60


@dataclass
class Point:
    """One node with its captions, and its neighbours along the flow of data."""

    id: str
    kind: str
    record: Document
    title: str
    where: str
    """A file's path as seen from here; empty for other kinds."""
    execution: str
    before: list[tuple[str, Point]] = field(default_factory=list, repr=False)
    after: list[tuple[str, Point]] = field(default_factory=list, repr=False)

    @property
    def family(self) -> str:
        """data, configuration, source, package or system: what kind of file it is."""
        return str(self.record.get("class") or ("data" if self.kind == "file" else ""))

    @property
    def installed(self) -> bool:
        """Whether it belongs to a package or the system, and nobody here made it."""
        return self.family in ("package", "system") and not self.before

    @property
    def hidden(self) -> int:
        """How many installed files a process used that the document counts and does not name."""
        return int(self.record.get("hidden") or 0)

    @property
    def package(self) -> str:
        given = self.record.get("package")
        return str(given["name"]) if isinstance(given, Mapping) else ""

    @property
    def mark(self) -> str:
        """What breaks the chain here, if anything does."""
        return "changed outside" if self.record.get("changed_outside") else ""

    @property
    def source(self) -> str:
        return clean(str(self.record.get("source") or ""))


def shape(document: Document, *, near: Callable[[str], str]) -> list[Point]:
    """The document's nodes as points, joined along the flow of data, in the document's order."""
    points = {node["id"]: _point(node, near) for node in document["nodes"]}
    seen: set[tuple[str, str, str]] = set()
    for edge in document["edges"]:
        kind, a, b = edge["kind"], points.get(edge["from"]), points.get(edge["to"])
        if kind == "part" and document["direction"] != "down":
            a, b = b, a  # an execution that was asked for stands where a result would
        if a is None or b is None or a is b or (kind, a.id, b.id) in seen:
            continue
        seen.add((kind, a.id, b.id))
        a.after.append((kind, b))
        b.before.append((kind, a))
    return list(points.values())


def targets(document: Document, points: list[Point]) -> list[Point]:
    """The points the question was about."""
    named = [point for point in points if point.id == document["target"]]
    roots = set(document.get("roots", ()))
    return named or [point for point in points if point.id in roots] or points[:1]


def _point(node: Document, near: Callable[[str], str]) -> Point:
    kind = str(node["kind"])
    execution = str(node.get("execution") or "")
    where = clean(near(str(node["path"]))) if kind == "file" else ""
    if kind == "process" and node.get("command") and not node.get("name"):
        title = _cut(command_line(node["command"]))
    elif kind == "stream":
        title = f"{clean(str(node['label']))} of {execution}"
    else:
        title = where or clean(str(node["label"]))
    return Point(str(node["id"]), kind, node, title, where, execution)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def facts(point: Point) -> list[tuple[str, str]]:
    """Everything worth reading about a point, as (word, value), in reading order."""
    node = point.record
    package = node.get("package")
    known = [
        ("Path", node.get("path")),
        ("Command", command_line(node["command"]) if node.get("command") else None),
        ("Program", node.get("exe")),
        ("Folder", node.get("cwd")),
        ("Id", node["id"]),
        ("Execution", node.get("execution")),
        ("Class", node.get("class")),
        ("Size", _exact(node.get("size"))),
        ("Digest", node.get("digest")),
        ("Package", _package(package) if isinstance(package, Mapping) else None),
        ("Source", node.get("source")),
        ("Written", node.get("mtime")),
        ("Started", node.get("started")),
        ("Ended", node.get("ended")),
        ("Took", duration(node["seconds"]) if node.get("seconds") is not None else None),
        ("Exit status", node.get("status")),
        ("Installed files", f"{point.hidden} (drawn with --all)" if point.hidden else None),
        ("Environment", _variables(node.get("environment"))),
        ("Notes", _variables(node.get("notes"))),
    ]
    return [
        (word, "\n".join(map(clean, str(value).split("\n"))))
        for word, value in known
        if value not in (None, "", {})
    ]


def _exact(count: int | None) -> str | None:
    if count is None:
        return None
    return size(count) if count < 1000 else f"{size(count)} ({count:,} bytes)"


def _package(package: Document) -> str:
    return " ".join(str(package[key]) for key in ("manager", "name", "version") if package.get(key))


def _variables(values: Any) -> str | None:
    if not isinstance(values, Mapping):
        return None
    return "\n".join(f"{name}={value}" for name, value in values.items())
