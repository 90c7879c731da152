"""Forwards one WebSocket to its target: messages in both directions until either side closes it.

A slow side slows down the other. One message of each side is held here, besides what the libraries
have read ahead.
"""

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send
from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.datastructures import Headers as Given
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from clew.server.proxy import headers
from clew.server.proxy.headers import Headers
from clew.server.proxy.http_client import Unreachable, UpstreamError
from clew.server.proxy.targets import Target
from clew.server.proxy.usage import TargetUsage

MAX_MESSAGE_BYTES = 64 << 20
"""Bytes of one message: a notebook's pictures come as one."""
_READ_AHEAD = 4
"""Messages that may wait to be taken."""
_OPEN_SECONDS = 20.0
_PING_SECONDS = 30.0
_PONG_SECONDS = 90.0
_NO_CODE, _WENT_AWAY, _FAILED = 1005, 1001, 1011
_NOT_SENT = frozenset((_NO_CODE, 1006, 1015))
"""Close codes that must not be sent."""
_HANDSHAKE = b"sec-websocket-"


class HandshakeRejected(Exception):
    """The target answered with something else than a WebSocket."""

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
    seen: TargetUsage,
) -> None:
    """Unreachable, UpstreamError, HandshakeRejected: the client has no answer yet."""
    await receive()  # that it wants to connect
    behind = await _connect(scope, target, address, given)
    try:
        back = headers.response_headers(_raw(behind.response), bodyless=True)
        accept: Message = {
            "type": "websocket.accept",
            "subprotocol": behind.subprotocol,
            "headers": [pair for pair in back if not pair[0].startswith(_HANDSHAKE)],
        }
        await send(accept)
        both = [
            asyncio.create_task(_there(receive, behind, seen)),
            asyncio.create_task(_back(behind, send, seen)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in both:
                one.cancel()
            await asyncio.wait(both)
    finally:
        behind.transport.abort()


async def _connect(
    scope: Scope, target: Target, address: bytes, given: Headers
) -> ClientConnection:
    host = next((value for name, value in given if name == b"host"), b"")
    offered = [Subprotocol(name) for name in scope.get("subprotocols", ())]

    def made() -> ClientConnection:
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

    rest = Given(
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in given
        if name != b"host"
    )
    connection: ClientConnection | None = None
    where = f"{target.host}:{target.port}"
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(made, target.host, target.port)
            await connection.handshake(rest, None)
    except BaseException as error:
        if connection is not None:
            connection.transport.abort()
        raise _explained(error, where) from None
    connection.start_keepalive()
    return connection


def _explained(error: BaseException, where: str) -> BaseException:
    if isinstance(error, TimeoutError):
        return Unreachable(f"no response from {where}", late=True)
    if isinstance(error, OSError):
        return Unreachable(f"cannot connect to {where}: {error.strerror or error}")
    if isinstance(error, InvalidStatus):
        answer = error.response
        return HandshakeRejected(
            answer.status_code,
            headers.response_headers(_raw(answer), bodyless=True),
            bytes(answer.body),
        )
    if isinstance(error, (InvalidHandshake, InvalidURI, EOFError)):
        return UpstreamError(f"what it answered is no WebSocket: {error}")
    return error


async def _there(receive: Receive, behind: ClientConnection, seen: TargetUsage) -> None:
    """From the client to the target, to the client's end."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            code = message.get("code") or _NO_CODE
            code = 1000 if code == _NO_CODE else _WENT_AWAY if code in _NOT_SENT else code
            await behind.close(code, message.get("reason") or "")
            return
        text = message.get("text")
        data: Any = message.get("bytes") if text is None else text
        seen.asked(len(data))
        try:
            await behind.send(data)
        except ConnectionClosed:
            await asyncio.Event().wait()  # the other direction tells the client how it ended


async def _back(behind: ClientConnection, send: Send, seen: TargetUsage) -> None:
    """From the target to the client, to the target's end."""
    try:
        while True:
            data = await behind.recv()
            seen.answered(len(data))
            kind = "text" if isinstance(data, str) else "bytes"
            await send({"type": "websocket.send", kind: data})
    except ConnectionClosed as error:
        code = error.rcvd.code if error.rcvd else _FAILED
        reason = error.rcvd.reason if error.rcvd else "what is behind went away"
        if code in _NOT_SENT:
            code = 1000 if code == _NO_CODE else _FAILED
        await send({"type": "websocket.close", "code": code, "reason": reason})


def _raw(response: Any) -> Headers:
    if response is None:
        return []
    pairs = response.headers.raw_items()
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs]
