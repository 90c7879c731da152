"""A lineage as Graphviz text: `clew trace model.pkl --dot | dot -Tsvg > lineage.svg`."""

from collections.abc import Iterator

from clew.cli.lineage.diagram_model import (
    INFERRED,
    SAME_CONTENT,
    Document,
    Point,
    build_points,
    find_targets,
)
from clew.cli.output import shorten_path

_STYLES = {
    "used": "solid",
    "generated": "bold",
    "informed": "dashed",
    SAME_CONTENT: 'dotted, color="#b3541e", label="same bytes"',  # inferred, not observed
    INFERRED: 'dotted, label="inferred"',
}


def lines(document: Document, *, everything: bool = False) -> Iterator[str]:
    """The graph from left to right along the flow of data; installed files if `everything`."""
    points = build_points(document, shorten=shorten_path)
    target_ids = {point.id for point in find_targets(document, points)}
    drawn = [p for p in points if everything or p.id in target_ids or not p.installed]
    numbers = {point.id: f"n{n}" for n, point in enumerate(drawn)}
    yield "digraph lineage {"
    yield '  rankdir=LR; node [fontname="sans-serif", fontsize=11]; edge [color="#777777"];'
    for point in drawn:
        width = ", penwidth=2" if point.id in target_ids else ""
        yield f"  {numbers[point.id]} [label={_quoted(_label(point))}, {_shape(point)}{width}];"
    for point in drawn:
        for kind, other in point.after:
            if other.id in numbers:
                style = _STYLES.get(kind, "dotted")
                yield f"  {numbers[point.id]} -> {numbers[other.id]} [style={style}];"
    yield "}"


def _label(point: Point) -> str:
    second = point.short_id if point.kind == "process" else point.execution
    return "\n".join(word for word in (point.title, second, point.mark, point.source) if word)


def _shape(point: Point) -> str:
    if point.kind == "process":
        return 'shape=box, style="rounded,filled", fillcolor="#fdf0dc"'
    if point.kind == "file":
        return 'shape=note, style=filled, fillcolor="#ffffff"'
    return 'shape=hexagon, style=filled, fillcolor="#eef0f2"'


def _quoted(text: str) -> str:
    """A DOT string: backslash and quote are the only characters with a meaning inside."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
