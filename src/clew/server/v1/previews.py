"""Previews of content: the start of a text or table, or a small image."""

from __future__ import annotations

import base64
import csv
import io
from typing import Any

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


def preview(name: str, head: bytes, size: int) -> dict[str, Any]:
    """The preview of content of `size` bytes. `head`: its first bytes, at least MAX_TEXT_BYTES if
    it is that large; all of it if it is an image, since images are not cut."""
    if not size:
        return {"kind": "empty", "media_type": "text/plain", "truncated": False}
    if (media := image_type(head)) is not None:
        complete = len(head) == size
        image = base64.b64encode(head).decode() if complete else None
        return {"kind": "image", "media_type": media, "truncated": not complete, "image": image}
    data = head[:MAX_TEXT_BYTES]
    truncated = len(data) < size
    text = _decode(data, truncated)
    if text is None:
        return {"kind": "binary", "media_type": "application/octet-stream", "truncated": truncated}
    for ending, separator in _SEPARATORS.items():
        if name.lower().endswith(ending) and (table := _table(text, separator, truncated)):
            return {"kind": "table", "media_type": "text/csv", "text": text, **table}
    return {"kind": "text", "media_type": "text/plain", "truncated": truncated, "text": text}


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


def _table(text: str, separator: str, truncated: bool) -> dict[str, Any] | None:
    lines = text.splitlines(keepends=True)
    if truncated and len(lines) > 1:
        lines.pop()  # it may be incomplete
    reader = csv.reader(io.StringIO("".join(lines)), delimiter=separator)
    rows: list[list[str]] = []
    more = False
    try:
        for row in reader:
            if len(rows) > _MAX_ROWS:
                more = True
                break
            rows.append([cell[:_MAX_CELL_CHARS] for cell in row[:_MAX_COLUMNS]])
            more = more or len(row) > _MAX_COLUMNS
    except csv.Error:
        return None
    if not rows:
        return None
    return {"columns": rows[0], "rows": rows[1:], "truncated": truncated or more}
