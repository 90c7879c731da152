"""The beginning of some bytes, as what they look like: text, a table, an image."""

from __future__ import annotations

import base64
import csv
import io
from typing import Any

MAX_TEXT_BYTES = 64 << 10
"""Bytes of text that are shown."""
MAX_IMAGE_BYTES = 2 << 20
"""Bytes of the largest image that is shown."""
_ROWS = 100
_COLUMNS = 100
_CELL = 500
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_TABLES = {".csv": ",", ".tsv": "\t"}


def preview(name: str, head: bytes, size: int) -> dict[str, Any]:
    """What to show of bytes that begin with `head`, at least MOST of them or all; an image is
    shown whole, so that all of it must be there."""
    if not size:
        return {"kind": "empty", "media_type": "text/plain", "truncated": False}
    if (media := image_type(head)) is not None:
        whole = len(head) == size
        image = base64.b64encode(head).decode() if whole else None
        return {"kind": "image", "media_type": media, "truncated": not whole, "image": image}
    shown = head[:MAX_TEXT_BYTES]
    truncated = len(shown) < size
    text = _text(shown, truncated)
    if text is None:
        return {"kind": "binary", "media_type": "application/octet-stream", "truncated": truncated}
    for ending, separator in _TABLES.items():
        if name.lower().endswith(ending) and (table := _table(text, separator, truncated)):
            return {"kind": "table", "media_type": "text/csv", "text": text, **table}
    return {"kind": "text", "media_type": "text/plain", "truncated": truncated, "text": text}


def image_type(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES if head.startswith(magic)), None)


def _text(data: bytes, cut: bool) -> str | None:
    """UTF-8, whose last letter may be cut off; None: it is something else."""
    if b"\0" in data:
        return None
    for dropped in range(4 if cut else 1):
        try:
            return data[: len(data) - dropped].decode()
        except UnicodeDecodeError:
            continue
    return None


def _table(text: str, separator: str, truncated: bool) -> dict[str, Any] | None:
    lines = text.splitlines(keepends=True)
    if truncated and len(lines) > 1:
        lines.pop()  # it may not be whole
    reader = csv.reader(io.StringIO("".join(lines)), delimiter=separator)
    rows: list[list[str]] = []
    more = False
    try:
        for row in reader:
            if len(rows) > _ROWS:
                more = True
                break
            rows.append([cell[:_CELL] for cell in row[:_COLUMNS]])
            more = more or len(row) > _COLUMNS
    except csv.Error:
        return None
    if not rows:
        return None
    return {"columns": rows[0], "rows": rows[1:], "truncated": truncated or more}
