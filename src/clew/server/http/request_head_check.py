"""Refuses requests with an ambiguous head, before anything else reads it.

The proxy forwards requests to other servers. If two servers disagree about where a request ends,
one client's request can become part of another's (request smuggling); if they disagree about the
host, a request reaches the wrong server. So ambiguous requests get a 400.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.server.http.problems import problem_response

_HOST = re.compile(rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_DIGITS = re.compile(rb"[0-9]{1,18}")
_TEXT = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")


class Malformed(ValueError):
    """The head of a request contradicts itself or HTTP."""


class HeadCheck:
    """Answers 400 to a malformed head, and passes on every other request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            try:
                if scope.get("method") == "CONNECT":
                    raise Malformed("this server is not a proxy for CONNECT")
                parse_host(scope)
                _check(scope["headers"])
            except Malformed as error:
                refusal = problem_response(
                    scope["path"],
                    400,
                    "malformed",
                    str(error),
                    hint="send an HTTP/1.1 request as RFC 9112 describes it",
                    headers={"Connection": "close"},
                )
                await refusal(scope, receive, send)
                return
        if scope["type"] == "http" and any(name == b"upgrade" for name, _ in scope["headers"]):
            send = _close_after(send)
        await self._app(scope, receive, send)


def _close_after(send: Send) -> Send:
    """Close the connection after the response: after an Upgrade header the server's parser reads
    no further requests, although we answer this one."""

    async def send_closing(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Connection"] = "close"
        await send(message)

    return send_closing


def parse_host(scope: Scope) -> str:
    """The host, and the port if it is stated, that the client means to talk to."""
    values = [value for name, value in scope["headers"] if name == b"host"]
    if len(values) != 1:
        raise Malformed("a request must have exactly one Host header")
    if _HOST.fullmatch(values[0]):
        text = str(values[0], "ascii").lower()
        try:
            if urlsplit(f"//{text}").port != 0:
                return text
        except ValueError:
            pass
    raise Malformed("the Host header is not a host name with an optional port")


def body_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """The number of bytes of the body; None: it comes in chunks."""
    lengths = [value for name, value in headers if name == b"content-length"]
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise Malformed("the length of the body is stated more than once")
    if codings:
        if codings[0].lower() != b"chunked":
            raise Malformed("the only supported transfer coding is chunked")
        return None
    if lengths and not _DIGITS.fullmatch(lengths[0]):
        raise Malformed("the Content-Length header is not a number")
    return int(lengths[0]) if lengths else 0


def _check(headers: Iterable[tuple[bytes, bytes]]) -> None:
    length = body_length(headers)
    for name, value in headers:
        if name == b"upgrade" and length != 0:
            # The server's parser ends such a request after its head; other servers read the body.
            raise Malformed("a request with an Upgrade header cannot have a body")
        if not _TEXT.fullmatch(value):
            raise Malformed("a header contains a control character")
