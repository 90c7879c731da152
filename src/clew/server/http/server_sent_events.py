"""Server-sent events: how they are written, and what every stream of them does alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

MEDIA_TYPE = "text/event-stream"
KEEPALIVE = b":\n\n"
"""Says no more than that somebody is still there."""
RETRY = b"retry: 1000\n\n"
"""A second after the server went, ask again from where you were."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def encode_event(
    data: Mapping[str, Any],
    *,
    kind: str | None = None,
    id: str | None = None,  # noqa: A002
) -> bytes:
    """One event. JSON has no line breaks of its own, so it is one line."""
    lines = []
    if id is not None:
        lines.append(f"id: {id}")
    if kind is not None:
        lines.append(f"event: {kind}")
    lines.append(f"data: {json.dumps(data, ensure_ascii=False)}")
    return ("\n".join(lines) + "\n\n").encode()


def stream_response(events: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(events, media_type=MEDIA_TYPE, headers=_HEADERS)


OPENAPI_CONTENT: dict[str, Any] = {
    MEDIA_TYPE: {
        "schema": {
            "type": "object",
            "description": "One event; `data` is JSON.",
            "required": ["data"],
            "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
        }
    }
}
"""The content of a stream, in OpenAPI's words."""
