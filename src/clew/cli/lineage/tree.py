"""A lineage as a tree of text lines.

    model.pkl (e1, 12.3 kB, blake3:ab12cd34)
    └─ python train.py  e1.p4
       ├─ data/clean.csv
       │  └─ python prepare.py  e1.p2
       │     └─ data/raw.csv  found by e1
       └─ … 412 files of installed packages (--all)

A dotted branch (`└┄`) is inferred, not observed: it leads to a version with the same bytes, which
the line above names, or the line says "inferred". A subtree is drawn once; where its root appears
again, the line says "see above". Nodes with children come first; installed files come last, as one
line, unless `everything` is set.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.cli.lineage.diagram_model import (
    INFERRED,
    SAME_CONTENT,
    Document,
    Point,
    build_points,
    find_targets,
)
from clew.cli.output import bold, dim, escape, format_size, shorten_path

_MOST_BRANCHES = 50
"""Branches of one line: a hundred thousand Pods may have used one volume."""
_NUMBERS = re.compile(r"(\d{0,18})(\D*)")


def lines(document: Document, *, everything: bool = False) -> Iterator[str]:
    """The lines of the tree, with styles, which `print_line` drops where there is no terminal."""
    points = build_points(document, shorten=shorten_path)
    origins = {bool(node.get("made_elsewhere")) for node in document["nodes"]}
    printer = _TreePrinter(
        up=document["direction"] != "down", everything=everything, mixed=len(origins) > 1
    )
    for n, target in enumerate(find_targets(document, points)):
        if n:
            yield ""
        yield from printer.root(target)


@dataclass
class _TreePrinter:
    up: bool
    everything: bool
    mixed: bool
    """Files were made here and elsewhere: each line says which. Otherwise only the first does."""
    drawn: set[str] = field(default_factory=set)

    def root(self, target: Point) -> Iterator[str]:
        about = [target.execution, format_size(target.record.get("size")), _short_digest(target)]
        if target.kind == "process":
            about = [target.short_id]
        details = ", ".join(word for word in about if word)
        yield bold(target.title) + (f" ({details})" if details else "") + self._ending(target)
        yield from self._children(target)

    def _children(self, root: Point) -> Iterator[str]:
        """Depth first with an explicit stack: a chain may exceed Python's recursion limit."""
        self.drawn.add(root.id)
        stack = [iter(self._branches(root))]
        margins = [""]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                margins.pop()
                continue
            kind, child, last = step
            margin = margins[-1] + ("└" if last else "├")
            margin += "┄ " if kind in (SAME_CONTENT, INFERRED) else "─ "
            if isinstance(child, str):
                yield margin + dim(child)
                continue
            branches = list(self._branches(child))
            again = child.id in self.drawn and bool(branches)
            inferred = dim("  inferred") if kind == INFERRED else ""
            yield margin + self._line(child) + inferred + (dim("  see above") if again else "")
            if not again:
                self.drawn.add(child.id)
                stack.append(iter(branches))
                margins.append(margins[-1] + ("   " if last else "│  "))

    def _branches(self, point: Point) -> Iterator[tuple[str, Point | str, bool]]:
        """The edges' kinds, the children, and whether each is the last; installed files as one
        line of text."""
        neighbours = point.before if self.up else point.after
        shown: dict[str, tuple[str, Point]] = {}
        installed: dict[str, Point] = {}
        for kind, other in neighbours:
            if other.installed and not self.everything:
                installed.setdefault(other.id, other)
            else:
                shown.setdefault(other.id, (kind, other))
        branches: list[tuple[str, Point | str]] = [
            *sorted(shown.values(), key=lambda branch: self._sort_key(branch[1]))
        ]
        if len(branches) > _MOST_BRANCHES and not self.everything:
            more = len(branches) - _MOST_BRANCHES
            branches[_MOST_BRANCHES:] = [("", f"… {more} more (--all)")]
        if installed or (point.hidden and self.up):
            branches.append(("", _summarize_installed([*installed.values()], point.hidden)))
        for n, (kind, child) in enumerate(branches):
            yield kind, child, n == len(branches) - 1

    def _sort_key(self, point: Point) -> tuple[object, ...]:
        """Files before processes, nodes with children before leaves, near before far, by name."""
        is_leaf = not (point.before if self.up else point.after)
        return (
            point.kind == "process",
            is_leaf,
            point.where.startswith("/"),
            _natural_key(point.title),
        )

    def _line(self, point: Point) -> str:
        if point.kind == "process":
            return f"{point.title}  {dim(point.short_id)}{_place(point)}{self._ending(point)}"
        return point.title + self._ending(point)

    def _ending(self, point: Point) -> str:
        """What a line says after the title: warnings, origin, source and notes."""
        ending = ""
        if point.mark:
            ending += "  " + bold(point.mark)
        if point.record.get("made_elsewhere") and (self.mixed or not self.drawn):
            ending += "  made elsewhere"
        origin = []
        if point.kind == "file" and not point.made and self.up and point.execution:
            how = "found" if point.record.get("found") else "made"
            origin.append(f"{how} by {point.execution}")
        origin += [point.same_bytes] if point.same_bytes else []
        if origin:
            ending += "  " + dim(", ".join(origin))
        if point.source:
            ending += f" (source: {point.source})"
        notes = point.record.get("notes") or {}
        if notes:
            pairs = ", ".join(f"{escape(str(k))}={escape(str(v))}" for k, v in notes.items())
            ending += dim(f"  [{pairs}]")
        return ending


def _natural_key(text: str) -> list[tuple[int, str]]:
    """A sort key that puts `f2` before `f10`."""
    return [(int(part or 0), other) for part, other in _NUMBERS.findall(text)]


def _summarize_installed(installed: list[Point], hidden: int) -> str:
    """One line for the files of installed packages, which the document names or only counts."""
    count = len(installed) + hidden
    packages = {point.package for point in installed if point.package}
    of = "installed packages"
    if packages and not hidden:
        of = next(iter(packages)) if len(packages) == 1 else f"{len(packages)} packages"
    return f"… {count} file{'s' if count != 1 else ''} of {of} (--all)"


def _place(point: Point) -> str:
    """Where a task of a pipeline ran as a Pod, and why there if a scheduler chose that; of another
    Pod, what created it."""
    record = point.record
    if record.get("owner"):
        return "  " + dim(escape(f"of {record['owner']}"))
    if record.get("pod") or not record.get("node"):  # of a Pod, the title says enough
        return ""
    return "  " + dim(escape(str(record.get("placement") or f"on {record['node']}")))


def _short_digest(point: Point) -> str:
    digest = str(point.record.get("digest") or "")
    scheme, _, digits = digest.partition(":")
    return f"{scheme}:{digits[:8]}" if digits else ""
