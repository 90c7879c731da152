"""A lineage as a tree of lines, readable at a glance.

    model.pkl (e1, 12.3 kB, blake3:ab12cd34)
    └─ python train.py  e1.p4
       ├─ data/clean.csv
       │  └─ python prepare.py  e1.p2
       │     └─ data/raw.csv  found by e1
       └─ … 412 files of installed packages (--all)

A subtree that was drawn already is not drawn again: its root says so. What leads further comes
first; installed files come last, as one line, unless all are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.cli.lineage.drawing import Document, Point, shape, targets
from clew.cli.output import clean, faint, nearest, size, strong

_NUMBERS = re.compile(r"(\d{0,18})(\D*)")


def lines(document: Document, *, everything: bool = False) -> Iterator[str]:
    """The tree, line by line, styled; the caller's printer drops the styles where unwanted."""
    points = shape(document, near=nearest)
    origins = {bool(node.get("made_elsewhere")) for node in document["nodes"]}
    walk = _Walk(up=document["direction"] != "down", everything=everything, mixed=len(origins) > 1)
    for n, target in enumerate(targets(document, points)):
        if n:
            yield ""
        yield from walk.root(target)


@dataclass
class _Walk:
    up: bool
    everything: bool
    mixed: bool
    """Some was made here and some elsewhere: each line says which. Otherwise the first one does."""
    drawn: set[str] = field(default_factory=set)

    def root(self, target: Point) -> Iterator[str]:
        about = [target.execution, size(target.record.get("size")), _short(target)]
        if target.kind == "process":
            about = [target.id]
        told = ", ".join(word for word in about if word)
        yield strong(target.title) + (f" ({told})" if told else "") + self._ending(target)
        yield from self._children(target)

    def _children(self, root: Point) -> Iterator[str]:
        """Depth first with a stack of our own: a chain may be longer than Python's is deep."""
        self.drawn.add(root.id)
        stack = [iter(self._branches(root))]
        margins = [""]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                margins.pop()
                continue
            child, last = step
            margin = margins[-1] + ("└─ " if last else "├─ ")
            if isinstance(child, str):
                yield margin + faint(child)
                continue
            branches = list(self._branches(child))
            again = child.id in self.drawn and bool(branches)
            yield margin + self._line(child) + (faint("  see above") if again else "")
            if not again:
                self.drawn.add(child.id)
                stack.append(iter(branches))
                margins.append(margins[-1] + ("   " if last else "│  "))

    def _branches(self, point: Point) -> Iterator[tuple[Point | str, bool]]:
        """The next points and whether each is the last; the installed ones as one line of text."""
        around = point.before if self.up else point.after
        shown: list[Point] = []
        installed: list[Point] = []
        seen: set[str] = set()
        for _, other in around:
            if other.id in seen:
                continue
            seen.add(other.id)
            if other.installed and not self.everything:
                installed.append(other)
            else:
                shown.append(other)
        shown.sort(key=self._place)
        branches: list[Point | str] = [*shown]
        if installed or (point.hidden and self.up):
            branches.append(_summary(installed, point.hidden))
        for n, child in enumerate(branches):
            yield child, n == len(branches) - 1

    def _place(self, point: Point) -> tuple[object, ...]:
        """Files before processes, what leads on before what ends, near before far, by name."""
        ends = not (point.before if self.up else point.after)
        return point.kind == "process", ends, point.where.startswith("/"), _natural(point.title)

    def _line(self, point: Point) -> str:
        if point.kind == "process":
            return f"{point.title}  {faint(point.id)}{self._ending(point)}"
        return point.title + self._ending(point)

    def _ending(self, point: Point) -> str:
        """What is said where the chain stops, or breaks."""
        words = ""
        if point.mark:
            words += "  " + strong(point.mark)
        if point.record.get("made_elsewhere") and (self.mixed or not self.drawn):
            words += "  made elsewhere"
        if point.kind == "file" and not point.before and self.up and point.execution:
            how = "found" if point.record.get("found") else "made"
            words += faint(f"  {how} by {point.execution}")
        if point.source:
            words += f" (source: {point.source})"
        notes = point.record.get("notes") or {}
        if notes:
            told = ", ".join(f"{clean(str(k))}={clean(str(v))}" for k, v in notes.items())
            words += faint(f"  [{told}]")
        return words


def _natural(text: str) -> list[tuple[int, str]]:
    """A key that puts `f2` before `f10`."""
    return [(int(part or 0), other) for part, other in _NUMBERS.findall(text)]


def _summary(installed: list[Point], hidden: int) -> str:
    """One line for the files of installed packages: named in the document, or only counted."""
    count = len(installed) + hidden
    packages = {point.package for point in installed if point.package}
    of = "installed packages"
    if packages and not hidden:
        of = next(iter(packages)) if len(packages) == 1 else f"{len(packages)} packages"
    return f"… {count} file{'s' if count != 1 else ''} of {of} (--all)"


def _short(point: Point) -> str:
    digest = str(point.record.get("digest") or "")
    scheme, _, digits = digest.partition(":")
    return f"{scheme}:{digits[:8]}" if digits else ""
