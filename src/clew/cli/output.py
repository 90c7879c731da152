"""How results look: JSON, tables, sizes, times. The only module that writes to stdout.

A table on a terminal is aligned and cut to its width; into a pipe it is one line a row with
tabs between, so that `cut` and `awk` can take it apart. Text from outside never reaches the
terminal raw: a file name may hold escape codes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from clew import settings

_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e"}

_OBEYED = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean(text: str) -> str:
    """`text` on one line, with whatever a terminal would obey made visible."""
    if text.isprintable():
        return text
    return "".join(_visible(c) for c in text)


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    return _ESCAPES.get(char) or char.encode("unicode_escape", "surrogatepass").decode()


def print_json(document: Any) -> None:
    """One document, and nothing else, on stdout."""
    text = json.dumps(document, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    print_bytes(text.encode("utf-8", "replace") + b"\n")


def print_bytes(content: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say(text: str = "") -> None:
    """A line of the result."""
    click.echo(_harmless(text), color=_colour(sys.stdout))


def remark(text: str) -> None:
    """A line beside the result, on stderr."""
    click.echo(_harmless(text), err=True, color=_colour(sys.stderr))


def _harmless(text: str) -> str:
    """The text with its lines and colours, and nothing else that a terminal would obey: a second
    guard, for text that should have been cleaned."""
    return _OBEYED.sub(lambda found: _visible(found[0]), text)


def _colour(stream: Any) -> bool:
    return stream.isatty() and settings.load().colour


def faint(text: str) -> str:
    return click.style(text, dim=True)


def strong(text: str) -> str:
    return click.style(text, bold=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """`rows` under `headings`; the last column gives way when the terminal is narrow."""
    cells = [[clean(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        say("\n".join("\t".join(row) for row in [list(headings), *cells]))
        return
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    room = shutil.get_terminal_size().columns
    lines = [strong(_aligned([heading.upper() for heading in headings], widths, room))]
    say("\n".join([*lines, *(_aligned(row, widths, room) for row in cells)]))


def _aligned(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    fixed = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=False))
    left = max(room - len(fixed), 12)
    last = row[-1]
    return fixed + (last if len(last) <= left else last[: left - 1] + "…")


def size(count: int | None) -> str:
    """Bytes as a person reads them: `12.3 kB`."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} B"
    value, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value >= 999.95:
            value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def counted(n: int | None, one: str, many: str = "") -> str:
    return f"{n or 0} {one if n == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def when(stamp: str | None) -> str:
    """An ISO time in UTC as the local clock shows it."""
    if not stamp:
        return ""
    from datetime import datetime

    return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def command_line(words: Sequence[str]) -> str:
    """A command as one would type it, on one line."""
    import shlex

    return clean(shlex.join(words))


def nearest(path: str) -> str:
    """`path` as seen from the current folder where that is shorter."""
    if not path.startswith("/"):
        return path
    try:
        relative = os.path.relpath(path)
    except OSError:  # the current folder is gone
        return path
    return relative if len(relative) < len(path) else path


def confirm(fact: str, question: str, *, yes: bool, hint: str) -> None:
    """Ask before something is lost; without a terminal to ask on, refuse."""
    from clew.errors import NotAllowed

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotAllowed(f"{fact}; there is no terminal to confirm on", hint=hint)
    click.echo(f"{fact}. {question} [y/N] ", err=True, nl=False, color=_colour(sys.stderr))
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotAllowed("nothing was done")
