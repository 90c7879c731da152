"""Server-sent events: their encoding, and the response that streams them."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message

MEDIA_TYPE = "text/event-stream"
_TYPE = MEDIA_TYPE.encode()
KEEPALIVE = b":\n\n"
"""A comment, which clients ignore."""
RETRY = b"retry: 1000\n\n"
"""Tells clients to reconnect after a second; they continue from `Last-Event-ID`."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def is_event_stream(message: Message) -> bool:
    """Whether this starts a response with server-sent events."""
    headers = message.get("headers", ())
    return any(n.lower() == b"content-type" and v.startswith(_TYPE) for n, v in headers)


def encode_event(
    data: Mapping[str, Any],
    *,
    kind: str | None = None,
    id: str | None = None,  # noqa: A002
) -> bytes:
    """Encode one event. The JSON contains no line breaks, so it is one `data` line."""
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
"""The OpenAPI description of a stream."""
