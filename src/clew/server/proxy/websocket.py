"""Forwards one WebSocket to its target: messages in both directions until either side closes it.

A slow side slows down the other. One message of each side is held here, besides what the libraries
have read ahead.
"""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.datastructures import Headers as HandshakeHeaders
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from clew.server.proxy import headers
from clew.server.proxy.headers import Headers
from clew.server.proxy.http_client import Unreachable, UpstreamError
from clew.server.proxy.targets import Target
from clew.server.proxy.usage import TargetUsage

MAX_MESSAGE_BYTES = 64 << 20
"""The limit for one message: a notebook sends a picture as one message."""
_READ_AHEAD = 4
"""Messages that may wait to be forwarded."""
_OPEN_SECONDS = 20.0
_PING_SECONDS = 30.0
_PONG_SECONDS = 90.0
_NO_CODE, _WENT_AWAY, _FAILED = 1005, 1001, 1011
_NOT_SENT = frozenset((_NO_CODE, 1006, 1015))
"""Close codes that must not be sent."""
_HANDSHAKE = b"sec-websocket-"


class HandshakeRejected(Exception):
    """The target responded with something else than a WebSocket."""

    def __init__(self, status: int, given: Headers, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = given
        self.body = body


async def forward_websocket(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    target: Target,
    address: bytes,
    given: Headers,
    usage: TargetUsage,
) -> None:
    """Unreachable, UpstreamError, HandshakeRejected: the client has no response yet."""
    await receive()  # websocket.connect
    upstream = await _connect(scope, target, address, given)
    try:
        back = headers.response_headers(_raw_headers(upstream.response), bodyless=True)
        accept: Message = {
            "type": "websocket.accept",
            "subprotocol": upstream.subprotocol,
            "headers": [pair for pair in back if not pair[0].startswith(_HANDSHAKE)],
        }
        await send(accept)
        both = [
            asyncio.create_task(_forward_to_target(receive, upstream, usage)),
            asyncio.create_task(_forward_to_client(upstream, send, usage)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.wait(both)
    finally:
        upstream.transport.abort()


async def _connect(
    scope: Scope, target: Target, address: bytes, given: Headers
) -> ClientConnection:
    host = next((value for name, value in given if name == b"host"), b"")
    offered = [Subprotocol(name) for name in scope.get("subprotocols", ())]

    def make_connection() -> ClientConnection:
        protocol = ClientProtocol(
            parse_uri(f"ws://{(host + address).decode('latin-1')}"),
            subprotocols=offered or None,
            max_size=MAX_MESSAGE_BYTES,
        )
        return ClientConnection(
            protocol,
            ping_interval=_PING_SECONDS,
            ping_timeout=_PONG_SECONDS,
            max_queue=_READ_AHEAD,
        )

    rest = HandshakeHeaders(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in given
        if name != b"host"
    )
    connection: ClientConnection | None = None
    where = f"{target.host}:{target.port}"
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(make_connection, target.host, target.port)
            await connection.handshake(rest, None)
    except BaseException as error:
        if connection is not None:
            connection.transport.abort()
        raise _translate_error(error, where) from None
    connection.start_keepalive()
    return connection


def _translate_error(error: BaseException, where: str) -> BaseException:
    if isinstance(error, TimeoutError):
        return Unreachable(f"no response from {where}", late=True)
    if isinstance(error, OSError):
        return Unreachable(f"cannot connect to {where}: {error.strerror or error}")
    if isinstance(error, InvalidStatus):
        answer = error.response
        return HandshakeRejected(
            answer.status_code,
            headers.response_headers(_raw_headers(answer), bodyless=True),
            bytes(answer.body),
        )
    if isinstance(error, (InvalidHandshake, InvalidURI, EOFError)):
        return UpstreamError(f"its response is not a WebSocket handshake: {error}")
    return error


async def _forward_to_target(
    receive: Receive, upstream: ClientConnection, usage: TargetUsage
) -> None:
    """Forward messages from the client to the target until the client closes."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            code = message.get("code") or _NO_CODE
            code = 1000 if code == _NO_CODE else _WENT_AWAY if code in _NOT_SENT else code
            await upstream.close(code, message.get("reason") or "")
            return
        text = message.get("text")
        data: Any = message.get("bytes") if text is None else text
        usage.add_request(len(data))
        try:
            await upstream.send(data)
        except ConnectionClosed:
            await asyncio.Event().wait()  # the other direction tells the client how it ended


async def _forward_to_client(upstream: ClientConnection, send: Send, usage: TargetUsage) -> None:
    """Forward messages from the target to the client until the target closes."""
    try:
        while True:
            data = await upstream.recv()
            usage.add_response(len(data))
            kind = "text" if isinstance(data, str) else "bytes"
            await send({"type": "websocket.send", kind: data})
    except ConnectionClosed as error:
        code = error.rcvd.code if error.rcvd else _FAILED
        reason = error.rcvd.reason if error.rcvd else "the target closed the connection"
        if code in _NOT_SENT:
            code = 1000 if code == _NO_CODE else _FAILED
        await send({"type": "websocket.close", "code": code, "reason": reason})


def _raw_headers(response: Any) -> Headers:
    if response is None:
        return []
    pairs = response.headers.raw_items()
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
