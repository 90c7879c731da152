"""Previews of content: the start of a text or table, a small image, or scalars of TensorBoard."""

import base64
import csv
import io
import math
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

from clew.api.tensorboard_events import read_scalars
from clew.documents.files.versions import Point, Preview
from clew.documents.ids import Digest

MAX_TEXT_BYTES = 64 << 10
"""How much of a text is shown."""
MAX_IMAGE_BYTES = 2 << 20
"""The largest image that is shown."""
_MAX_ROWS = 100
_MAX_COLUMNS = 100
_MAX_CELL_CHARS = 500
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_VECTOR_IMAGE = ".svg"
_TEXT_KINDS: dict[str, tuple[Literal["text", "html", "notebook"], str]] = {
    ".html": ("html", "text/html"),
    ".htm": ("html", "text/html"),
    ".ipynb": ("notebook", "application/x-ipynb+json"),
    ".json": ("text", "application/json"),
    ".yaml": ("text", "application/yaml"),
    ".yml": ("text", "application/yaml"),
    ".py": ("text", "text/x-python"),
    ".md": ("text", "text/markdown"),
}
_BINARY_TYPES = {".parquet": "application/vnd.apache.parquet", ".pdf": "application/pdf"}
_MAX_EVENTS_BYTES = 16 << 20
_MAX_SERIES = 100
_MAX_POINTS = 5000
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_MIN_ROWS = 3
"""Rows of a table that is recognized by its rows alone."""


def bytes_needed(name: str, head: bytes, size: int) -> int:
    """How much of a content its preview needs, as seen from its first bytes: images are not cut."""
    if is_events(name):
        return min(size, _MAX_EVENTS_BYTES)
    is_image = image_type(head) is not None or name.lower().endswith(_VECTOR_IMAGE)
    return size if is_image and size <= MAX_IMAGE_BYTES else min(size, MAX_TEXT_BYTES)


def is_events(name: str) -> bool:
    """Whether a file of this name has events of TensorBoard."""
    return ".tfevents." in name.rpartition("/")[2]


def make_preview(version: str, digest: Digest, name: str, head: bytes, size: int) -> Preview:
    """The preview of content of `size` bytes in the file `name`. `head`: its first bytes, at least
    MAX_TEXT_BYTES if it is that large; all of it if it is an image, since images are not cut."""
    preview = partial(Preview, version=version, digest=digest, size=size)
    if not size:
        return preview(kind="empty", media_type="text/plain", truncated=False)
    if (media := image_type(head)) is not None:
        complete = len(head) == size
        image = base64.b64encode(head).decode() if complete else None
        return preview(kind="image", media_type=media, truncated=not complete, image=image)
    if is_events(name):
        return preview(
            kind="scalars",
            media_type="application/octet-stream",
            truncated=len(head) < size,
            series=_read_series(head),
        )
    ending = PurePosixPath(name.lower()).suffix
    if ending == _VECTOR_IMAGE and len(head) == size and _decode(head, truncated=False):
        image = base64.b64encode(head).decode()
        return preview(kind="image", media_type="image/svg+xml", truncated=False, image=image)
    return _preview_text(preview, ending, head[:MAX_TEXT_BYTES], size)


def _preview_text(preview: Callable[..., Preview], ending: str, data: bytes, size: int) -> Preview:
    """The preview of a text, a table, or bytes that are neither."""
    truncated = len(data) < size
    text = _decode(data, truncated)
    if text is None:
        media = _BINARY_TYPES.get(ending, "application/octet-stream")
        return preview(kind="binary", media_type=media, truncated=truncated)
    separator = _find_separator(text, truncated) if not ending else _SEPARATORS.get(ending)
    if separator and (table := _parse_table(text, separator, truncated)):
        rows, more = table
        return preview(
            kind="table",
            media_type="text/csv",
            truncated=more,
            text=text,
            columns=rows[0],
            rows=tuple(rows[1:]),
        )
    kind, media = _TEXT_KINDS.get(ending, ("text", "text/plain"))
    return preview(kind=kind, media_type=media, truncated=truncated, text=text)


def _read_series(data: bytes) -> dict[str, tuple[Point, ...]]:
    """The scalars, at most 5,000 points of each, evenly chosen."""
    found = {}
    for name, points in list(read_scalars(data).items())[:_MAX_SERIES]:
        finite = [Point(step, value) for step, value in points if math.isfinite(value)]
        stride = max(1, -(-len(finite) // _MAX_POINTS))
        found[name[:_MAX_CELL_CHARS]] = tuple(finite[::stride])
    return found


def image_type(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES if head.startswith(magic)), None)


def _decode(data: bytes, truncated: bool) -> str | None:
    """Decode UTF-8 whose last character may be incomplete; None if it is not UTF-8."""
    if b"\0" in data:
        return None
    for dropped in range(4 if truncated else 1):
        try:
            return data[: len(data) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return None


def _find_separator(text: str, truncated: bool) -> str | None:
    """The separator of a table in a file whose name has no ending, as those of artifacts: with it,
    all rows have the same number of columns."""
    for separator in _SEPARATORS.values():
        rows, _ = _parse_table(text, separator, truncated) or ([], False)
        if len(rows) >= _MIN_ROWS and len({len(row) for row in rows}) == 1 < len(rows[0]):
            return separator
    return None


def _parse_table(
    text: str, separator: str, truncated: bool
) -> tuple[list[tuple[str, ...]], bool] | None:
    """The rows, with the headings, and whether there are more."""
    lines = text.splitlines(keepends=True)
    if truncated and len(lines) > 1:
        lines.pop()  # it may be incomplete
    reader = csv.reader(io.StringIO("".join(lines)), delimiter=separator)
    rows: list[tuple[str, ...]] = []
    more = False
    try:
        for row in reader:
            if len(rows) > _MAX_ROWS:
                more = True
                break
            rows.append(tuple(cell[:_MAX_CELL_CHARS] for cell in row[:_MAX_COLUMNS]))
            more = more or len(row) > _MAX_COLUMNS
    except csv.Error:
        return None
    return (rows, truncated or more) if rows else None
