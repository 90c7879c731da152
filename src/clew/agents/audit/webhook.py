"""Receive audit events from the API server's webhook over HTTPS; each client needs the token.

The API server sends a batch again if it gets no answer or 429, a few times; after that the events
are lost, and it counts them. So the log is the default, and this is for clusters whose log cannot
be read.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import ssl
import threading
from pathlib import Path

import uvicorn
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from clew.agents.audit.ingestion import AuditIngestion
from clew.errors import ClewError, Full, UsageError
from clew.witness.kubernetes_audit.audit_event import Malformed, split_event_list

MAX_BODY_BYTES = 64 << 20
_MAX_CONNECTIONS = 64
_READ_SECONDS = 30
_STOP_SECONDS = 0.2
_RETRY_AFTER = {"Retry-After": "5"}
_SHORTEST_TOKEN = 16


class AuditWebhook:
    """A witness: an HTTPS server for one API server, or several."""

    def __init__(
        self,
        address: str,
        ingestion: AuditIngestion,
        *,
        certificate: Path | None,
        key: Path | None,
        token_file: Path | None,
    ) -> None:
        """`address`: HOST:PORT. Without a certificate it must be a loopback address."""
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"--listen {address} is not HOST:PORT", hint="--listen 0.0.0.0:8443")
        if token_file is None:
            raise UsageError(
                "--listen needs --token-file: every client of the address could forge events",
                hint="head -c 32 /dev/urandom | base64 > token",
            )
        if (certificate is None) != (key is None):
            raise UsageError("--certificate and --key belong together")
        if certificate is None and not _is_loopback(host):
            raise UsageError(
                f"--listen {address} needs --certificate and --key: the token must not be sent"
                " in clear text"
            )
        self._token = token_file.read_bytes().strip()
        if len(self._token) < _SHORTEST_TOKEN:
            raise UsageError(f"the token in {token_file} has fewer than {_SHORTEST_TOKEN} bytes")
        self._ingestion = ingestion
        config = uvicorn.Config(
            self._answer,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            log_level="warning",
            access_log=False,
            server_header=False,
            interface="asgi3",
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_keep_alive=_READ_SECONDS,
            timeout_graceful_shutdown=_READ_SECONDS,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise UsageError(f"the certificate or its key cannot be used: {error}") from error
        self._server = uvicorn.Server(config)
        self._socket = _listen(host, int(port))
        scheme = "http" if certificate is None else "https"
        shown = f"[{host}]" if ":" in host else host
        self.address = f"{scheme}://{shown}:{self._socket.getsockname()[1]}"

    def run(self, stopping: threading.Event) -> None:
        """Answer until `stopping` is set."""
        thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        thread.start()
        while not stopping.wait(_STOP_SECONDS) and thread.is_alive():
            pass
        self._server.should_exit = True
        thread.join()
        self._socket.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (await self._take(Request(scope, receive)))(scope, receive, send)

    async def _take(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(given, b"Bearer " + self._token):
            return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
        if request.method != "POST":
            return Response(status_code=405, headers={"Allow": "POST"})
        try:
            events = split_event_list(await _read_body(request))
            await run_in_threadpool(self._ingestion.ingest_events, events)
        except (Malformed, ClientDisconnect) as error:
            return Response(f"the body is not an EventList: {error}", status_code=400)
        except ClewError as error:
            status = 429 if isinstance(error, Full) else 503
            return Response(error.message, status_code=status, headers=_RETRY_AFTER)
        return Response(status_code=200)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise Malformed(f"it has more than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
