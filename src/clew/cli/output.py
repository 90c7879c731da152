"""Format and print results: JSON, tables, sizes, times. The only module that writes to stdout.

A table is aligned and cut to the width of the terminal; in a pipe it has one line per row with
tabs between the cells, for `cut` and `awk`. Text of unknown origin is escaped before it is
printed: a file name may contain terminal escape codes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from clew import settings

if TYPE_CHECKING:
    from datetime import datetime

FIELDS = "clew.fields"
"""The key in a click context of the fields of `--json=FIELDS`."""

_SPECIAL_IN_QUOTES = frozenset('"$`\\!\n')
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\x1b": "\\e"}

_CONTROLS = re.compile(
    "\x1b(?!\\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def escape(text: str) -> str:
    """`text` on one line, with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(_escape_char(c) for c in text)


def _escape_char(char: str) -> str:
    if char.isprintable():
        return char
    return _ESCAPES.get(char) or char.encode("unicode_escape", "surrogatepass").decode()


def print_json(document: Any) -> None:
    """Print one JSON document on stdout, or the fields of it that `--json=FIELDS` names."""
    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(select_fields(document), ensure_ascii=False, indent=indent)
    # JSON may contain the control characters beyond ASCII as they are: a terminal would obey them
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    print_bytes(text.encode("utf-8", "replace") + b"\n")


def select_fields(document: Any) -> Any:
    """The fields of the document, or of each of its elements, that `--json=FIELDS` names."""
    context = click.get_current_context(silent=True)
    fields: tuple[str, ...] = context.meta.get(FIELDS, ()) if context else ()
    if not fields or not document:
        return document
    several = isinstance(document, list | tuple)
    elements = document if several else [document]
    known = {name: None for element in elements for name in element}
    if unknown := [field for field in fields if field not in known]:
        from clew.errors import UsageError

        raise UsageError(f"no field {', '.join(unknown)}", hint=f"fields: {', '.join(known)}")
    selected = [{field: element.get(field) for field in fields} for element in elements]
    return selected if several else selected[0]


def print_bytes(content: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def print_line(text: str = "") -> None:
    """Print a line of the result on stdout."""
    click.echo(_escape_controls(text), color=_use_colour(sys.stdout))


def print_message(text: str) -> None:
    """Print a line that is not part of the result on stderr."""
    click.echo(_escape_controls(text), err=True, color=_use_colour(sys.stderr))


def _escape_controls(text: str) -> str:
    """Escape control characters except newlines, tabs and colour codes.

    A second line of defence, for text that a caller forgot to escape.
    """
    return _CONTROLS.sub(lambda match: _escape_char(match[0]), text)


def _use_colour(stream: Any) -> bool:
    return stream.isatty() and settings.load().colour


def dim(text: str) -> str:
    return click.style(text, dim=True)


def bold(text: str) -> str:
    return click.style(text, bold=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print `rows` under `headings`; the last column is cut where the terminal is narrow."""
    cells = [[escape(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        print_line("\n".join("\t".join(row) for row in [list(headings), *cells]))
        return
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    width = shutil.get_terminal_size().columns
    lines = [bold(_align_row([heading.upper() for heading in headings], widths, width))]
    print_line("\n".join([*lines, *(_align_row(row, widths, width) for row in cells)]))


def _align_row(row: Sequence[str], widths: Sequence[int], width: int) -> str:
    fixed = "".join(f"{cell:<{width}}  " for cell, width in zip(row[:-1], widths, strict=False))
    remaining = max(width - len(fixed), 12)
    last = row[-1]
    return fixed + (last if len(last) <= remaining else last[: remaining - 1] + "…")


def format_size(count: int | None) -> str:
    """A number of bytes for people: `12.3 kB`."""
    if count is None:
        return ""
    if count < 1000:
        return f"{count} B"
    value, unit = count / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value >= 999.95:
            value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def format_count(n: int | None, singular: str, plural: str = "") -> str:
    return f"{n or 0} {singular if n == 1 else plural or singular + 's'}"


def format_duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def format_time(at: datetime | str | None) -> str:
    """A time, or the text of one in ISO 8601, as local time."""
    if not at:
        return ""
    if isinstance(at, str):
        from datetime import datetime

        try:
            return format_time(datetime.fromisoformat(at))
        except (ValueError, OverflowError):  # a server may send anything
            return at
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_command(words: Sequence[str]) -> str:
    """A command on one line, quoted for a shell."""
    return escape(" ".join(map(_quote, words)))


def _quote(word: str) -> str:
    """Double quotes around a word with single quotes are easier to read than `'"'"'`."""
    import shlex

    if "'" in word and not _SPECIAL_IN_QUOTES & set(word):
        return f'"{word}"'
    return shlex.quote(word)


def shorten_path(path: str) -> str:
    """`path` relative to the current directory where that is shorter."""
    if not path.startswith("/"):
        return path
    try:
        relative = os.path.relpath(path)
    except OSError:  # the current directory was deleted
        return path
    return relative if len(relative) < len(path) else path


def confirm(fact: str, question: str, *, yes: bool, hint: str) -> None:
    """Ask for confirmation before data is lost; refuse where there is no terminal to ask on."""
    from clew.errors import NotAllowed

    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotAllowed(f"{fact}; there is no terminal to confirm on", hint=hint)
    click.echo(f"{fact}. {question} [y/N] ", err=True, nl=False, color=_use_colour(sys.stderr))
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotAllowed("nothing was done")
