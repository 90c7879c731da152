"""The routes of the extender, as an ASGI application: bounded bodies, plain answers.

kube-scheduler waits for each answer before it goes on, so there is nothing between the server and
the decision.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.types import Receive, Scope, Send

from clew.errors import ClewError, UsageError
from clew.kube.scheduler.extender import Extender
from clew.kube.scheduler.wire_format import MAX_BODY_BYTES

_LOG = logging.getLogger("clew.scheduler")
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_TEXT = b"text/plain; charset=utf-8"


class _Answer(NamedTuple):
    status: int
    body: bytes
    kind: bytes = _TEXT


class _Gone(Exception):
    """The client went away."""


def make_app(
    extender: Extender | None, *, render_metrics: Callable[[], bytes], is_ready: Callable[[], bool]
) -> App:
    """Without an extender, the application has /healthz and /metrics only."""
    verbs: Mapping[str, Callable[[bytes], bytes]] = (
        {"/filter": extender.filter, "/prioritize": extender.prioritize} if extender else {}
    )

    def check_health() -> _Answer:
        if is_ready():
            return _Answer(200, b"ok\n")
        return _Answer(503, b"nodes and Pods are not listed yet\n")

    pages: Mapping[str, Callable[[], _Answer]] = {
        "/healthz": check_health,
        "/metrics": lambda: _Answer(200, render_metrics(), b"text/plain; version=0.0.4"),
    }

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        try:
            if path in verbs:
                answer = await _decide(verbs[path], scope["method"], receive)
            else:
                answer = pages[path]() if path in pages else _Answer(404, b"not found\n")
        except _Gone:
            return
        length = b"%d" % len(answer.body)
        headers = [(b"content-type", answer.kind), (b"content-length", length)]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    return app


async def _decide(verb: Callable[[bytes], bytes], method: str, receive: Receive) -> _Answer:
    if method != "POST":
        return _Answer(405, b"POST is needed\n")
    try:
        return _Answer(200, verb(await _read_body(receive)), b"application/json")
    except ClewError as error:
        _LOG.warning("refused a request: %s", error.message)
        return _Answer(error.http_status, f"{error.message}\n".encode())


async def _read_body(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise UsageError(f"the request has more than {MAX_BODY_BYTES} bytes")
        if not message.get("more_body"):
            return bytes(body)
