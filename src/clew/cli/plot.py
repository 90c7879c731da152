"""Plots of metrics: bars for a terminal, and an SVG picture."""

from collections.abc import Callable, Mapping, Sequence
from html import escape

from clew.cli.output import escape as escape_controls

Points = Sequence[tuple[float, float]]

_BAR = 40
"""Characters of the longest bar."""
_WIDTH, _HEIGHT, _MARGIN = 640, 400, 56
_COLOURS = ("#0b6e99", "#c1571a", "#3d7a3d", "#8a4fa0", "#a8324a", "#5b6770", "#8f7a00", "#1d8a84")


def format_bars(values: Sequence[tuple[str, float]]) -> str:
    """One line for each label and value. Bars begin at 0, or at the smallest negative value."""
    low, high = min(0, *(v for _, v in values)), max(0, *(v for _, v in values))
    lead = max(len(escape_controls(label)) for label, _ in values)
    lines = []
    for label, value in values:
        bar = "█" * round((value - low) / ((high - low) or 1) * _BAR)
        lines.append(f"{escape_controls(label):<{lead}}  {value:<12.6g} {bar}".rstrip())
    return "\n".join(lines)


def render_svg(lines: Mapping[str, Points], *, title: str, x_label: str) -> str:
    """A line with a dot at each point for every label, with axes and a legend."""
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    left, right, top, bottom = _MARGIN, _WIDTH - 16, 40, _HEIGHT - _MARGIN
    x_at = _scale(min(xs), max(xs), left, right)
    y_at = _scale(min(ys), max(ys), bottom, top)
    parts = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12"'
            f' viewBox="0 0 {_WIDTH} {_HEIGHT + 20 * len(lines)}">'
        ),
        f'<text x="{left}" y="24" font-size="15">{escape(title)}</text>',
        f'<path d="M{left},{top}V{bottom}H{right}" fill="none" stroke="#888"/>',
        f'<text x="{right}" y="{bottom + 40}" text-anchor="end">{escape(x_label)}</text>',
    ]
    for x in sorted({min(xs), max(xs)}):
        parts.append(f'<text x="{x_at(x):.1f}" y="{bottom + 18}" text-anchor="middle">{x:g}</text>')
    for y in sorted({min(ys), max(ys)}):
        parts.append(f'<text x="{left - 6}" y="{y_at(y) + 4:.1f}" text-anchor="end">{y:.4g}</text>')
    for n, (label, points) in enumerate(lines.items()):
        colour = _COLOURS[n % len(_COLOURS)]
        path = " ".join(f"{x_at(x):.1f},{y_at(y):.1f}" for x, y in points)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        if len(points) <= _BAR:
            for x, y in points:
                parts.append(
                    f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3" fill="{colour}"/>'
                )
        height = _HEIGHT + 20 * n
        parts.append(f'<rect x="{left}" y="{height - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{left + 16}" y="{height}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1
    return lambda value: start + (value - low) / span * (end - start)
