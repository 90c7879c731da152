"""Previews of content: the start of a text or table, or a small image."""

import base64
import csv
import io
from functools import partial

from clew.documents.ids import Digest
from clew.documents.versions import Preview

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
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


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
    data = head[:MAX_TEXT_BYTES]
    truncated = len(data) < size
    text = _decode(data, truncated)
    if text is None:
        media = "application/octet-stream"
        return preview(kind="binary", media_type=media, truncated=truncated)
    for ending, separator in _SEPARATORS.items():
        if name.lower().endswith(ending) and (table := _parse_table(text, separator, truncated)):
            rows, more = table
            return preview(
                kind="table",
                media_type="text/csv",
                truncated=more,
                text=text,
                columns=rows[0],
                rows=tuple(rows[1:]),
            )
    return preview(kind="text", media_type="text/plain", truncated=truncated, text=text)


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
