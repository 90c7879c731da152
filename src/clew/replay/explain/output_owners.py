"""Who printed what differs, where the record tells which part of the output is whose."""

from __future__ import annotations

from collections.abc import Iterable

from clew.redaction import MASK
from clew.replay.compare.execution_pair import Views
from clew.replay.compare.process_alignment import Pair


def printed(views: Views, pairs: set[Pair], stream: str) -> tuple[set[Pair], set[Pair]]:
    """Of those that held this stream: who is known to have printed something else, and who the
    same. A parent's part holds its children's: where all it printed is known to be theirs or the
    same, they stand for it."""
    changed: set[Pair] = set()
    same: set[Pair] = set()
    contents = _contents(views, stream)
    if contents is None:
        return changed, same
    for pair in pairs:
        a, b = views.a.stretch(pair.a, stream), views.b.stretch(pair.b, stream)
        if a is not None and b is not None:
            alike = contents[0][a[0] : a[1]] == contents[1][b[0] : b[1]]
            (same if alike else changed).add(pair)
    unknown = pairs - changed - same
    above = _ancestors(views, changed | unknown)
    return changed - above, same


def _ancestors(views: Views, pairs: Iterable[Pair]) -> set[Pair]:
    lines = (views.b.line(pair.b) - {pair.b.key} for pair in pairs)
    keys = {key for line in lines for key in line}
    return {views.alignment.by_b[key] for key in keys if key in views.alignment.by_b}


def _contents(views: Views, stream: str) -> tuple[bytes, bytes] | None:
    """What both printed, if it was kept as it was."""
    found = []
    for side in (views.a, views.b):
        line = side.lines.get(stream)
        if stream not in ("stdout", "stderr") or not line or not line[-1].stored:
            return None
        content = views.read(line[-1].digest or "")
        if content is None or MASK.encode() in content:  # what is masked has another length
            return None
        found.append(content)
    return found[0], found[1]
