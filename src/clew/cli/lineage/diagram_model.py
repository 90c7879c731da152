"""The model that all drawings share: nodes with captions and their neighbours.

Edges of the `trace` document follow the flow of data, from input to output. A `Point` adds
captions to a node and links it to its neighbours in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.cli.output import escape, format_command, format_duration, format_size

Document = Mapping[str, Any]

LONGEST_COMMAND = 60
SAME_CONTENT = "same_content"
"""The kind of an edge that was inferred from equal bytes."""
INFERRED = "inferred"
"""The kind of any other edge that was inferred: from times, or from a volume as a whole."""
_LISTED_CANDIDATES = 3
_IN_CLUSTER = frozenset({"container", "pod", "request", "claim", "controller", "node"})
"""Kinds of activities of a cluster, which are drawn as processes are."""
_GIT_BLOB = re.compile(
    r"swh:1:cnt:[0-9a-f]{40};anchor=swh:1:rev:([0-9a-f]{12})[0-9a-f]{28};path=.*"
)


@dataclass
class Point:
    """One node with its captions, and its neighbours along the flow of data."""

    id: str
    kind: str
    record: Document
    title: str
    where: str
    """A file's path relative to the current directory; empty for other kinds."""
    execution: str
    same_bytes: str = ""
    """The recorded versions a found file is probably a copy of, in words; else empty."""
    before: list[tuple[str, Point]] = field(default_factory=list, repr=False)
    after: list[tuple[str, Point]] = field(default_factory=list, repr=False)

    @property
    def family(self) -> str:
        """The class of a file: data, configuration, source, package or system."""
        return str(self.record.get("class") or ("data" if self.kind == "file" else ""))

    @property
    def installed(self) -> bool:
        """Whether the file belongs to a package or the system and no recorded process wrote it."""
        return self.family in ("package", "system") and not self.before

    @property
    def short_id(self) -> str:
        """The id to show; of a container, whose id is long, its Pod's execution."""
        return self.execution if self.record["kind"] == "container" else self.id

    @property
    def hidden(self) -> int:
        """The number of installed files a process used that the document only counts."""
        return int(self.record.get("hidden") or 0)

    @property
    def package(self) -> str:
        package = self.record.get("package")
        return str(package["name"]) if isinstance(package, Mapping) else ""

    @property
    def mark(self) -> str:
        """A warning where the chain of provenance is broken, else empty."""
        if self.record.get("changed_outside"):
            return "changed outside"
        gaps = self.record.get("gaps") or []
        more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
        return f"gap: {escape(str(gaps[0]['why']))}{more}" if gaps else ""

    @property
    def made(self) -> bool:
        """Whether a recorded process made it."""
        return any(kind != SAME_CONTENT for kind, _ in self.before)

    @property
    def source(self) -> str:
        """The URL or Git commit it came from."""
        source = str(self.record.get("source") or "")
        commit = _GIT_BLOB.fullmatch(source)
        return f"git {commit[1]}" if commit else escape(source)


def build_points(document: Document, *, shorten: Callable[[str], str]) -> list[Point]:
    """The document's nodes as linked points, in the document's order."""
    points = {node["id"]: _make_point(node, shorten) for node in document["nodes"]}
    seen: set[tuple[str, str, str]] = set()
    for edge in document["edges"]:
        kind = INFERRED if edge.get("inferred") else edge["kind"]
        a, b = points.get(edge["from"]), points.get(edge["to"])
        if kind == "part" and document["direction"] != "down":
            a, b = b, a  # draw a traced execution in the place of a result
        if a is None or b is None or a is b or (kind, a.id, b.id) in seen:
            continue
        seen.add((kind, a.id, b.id))
        a.after.append((kind, b))
        b.before.append((kind, a))
    return list(points.values())


def find_targets(document: Document, points: list[Point]) -> list[Point]:
    """The points that are the target of the trace."""
    named = [point for point in points if point.id == document["target"]]
    roots = set(document.get("roots", ()))
    return named or [point for point in points if point.id in roots] or points[:1]


def _make_point(node: Document, shorten: Callable[[str], str]) -> Point:
    kind = str(node["kind"])
    execution = str(node.get("execution") or "")
    where = ""
    if kind == "file":
        name = str(node["path"])
        where = escape(str(node["label"]) if "://" in name else shorten(name))
    if kind in _IN_CLUSTER:
        kind, title = "process", _describe_in_cluster(node)
    elif kind == "process" and node.get("command") and not node.get("name"):
        title = _shorten(format_command(node["command"]))
    elif kind == "stream":
        title = f"{escape(str(node['label']))} of {execution}"
    else:
        title = where or escape(str(node["label"]))
    same_bytes = _describe_same_bytes(node.get("same_content") or [], shorten)
    return Point(str(node["id"]), kind, node, title, where, execution, same_bytes)


def _describe_in_cluster(node: Document) -> str:
    """`pod team/train  trainer:1 python train.py`."""
    words = [escape(str(node["image"]))] if node.get("image") else []
    words += [format_command(node["command"])] if node.get("command") else []
    return "  ".join(filter(None, (escape(str(node["label"])), _shorten(" ".join(words)))))


def _describe_same_bytes(candidates: list[Document], shorten: Callable[[str], str]) -> str:
    """`same bytes as e1:got.csv`, the likeliest candidate first."""
    names = []
    for candidate in candidates[:_LISTED_CANDIDATES]:
        name = f"{candidate['execution']}:{escape(shorten(str(candidate['path'])))}"
        member = candidate.get("member")
        names.append(f"{escape(member)} in {name}" if member else name)
    if not names:
        return ""
    if more := len(candidates) - len(names):
        names.append(f"{more} more")
    if candidates[0]["strength"] == "weak":
        names[0] += " (weak)"
    return f"same bytes as {' or '.join(names)}"


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def list_facts(point: Point) -> list[tuple[str, str]]:
    """The details of a point as (label, value), in reading order."""
    node = point.record
    package = node.get("package")
    details = [
        ("Path", node.get("path")),
        ("Command", format_command(node["command"]) if node.get("command") else None),
        ("Program", node.get("exe")),
        ("Directory", node.get("cwd")),
        ("Id", node["id"]),
        ("Execution", node.get("execution")),
        ("Container", node.get("container")),
        ("Image", node.get("image")),
        ("Node", node.get("node")),
        ("Agent", node.get("agent")),
        ("Gaps", _format_gaps(node.get("gaps") or [])),
        ("Class", node.get("class")),
        ("Size", _format_exact_size(node.get("size"))),
        ("Digest", node.get("digest")),
        ("Package", _format_package(package) if isinstance(package, Mapping) else None),
        ("Source", node.get("source")),
        ("Not observed", point.same_bytes),
        ("Written", node.get("mtime")),
        ("Started", node.get("started")),
        ("Ended", node.get("ended")),
        ("Took", format_duration(node["seconds"]) if node.get("seconds") is not None else None),
        ("Exit status", node.get("status")),
        ("Installed files", f"{point.hidden} (drawn with --all)" if point.hidden else None),
        ("Environment", _format_variables(node.get("environment"))),
        ("Notes", _format_variables(node.get("notes"))),
    ]
    return [
        (label, "\n".join(map(escape, str(value).split("\n"))))
        for label, value in details
        if value not in (None, "", {})
    ]


def _format_exact_size(count: int | None) -> str | None:
    if count is None:
        return None
    return format_size(count) if count < 1000 else f"{format_size(count)} ({count:,} bytes)"


def _format_gaps(gaps: list[Document]) -> str:
    return "\n".join(f"{gap['what']}: {gap['why']}" for gap in gaps)


def _format_package(package: Document) -> str:
    return " ".join(str(package[key]) for key in ("manager", "name", "version") if package.get(key))


def _format_variables(values: Any) -> str | None:
    if not isinstance(values, Mapping):
        return None
    return "\n".join(f"{name}={value}" for name, value in values.items())
