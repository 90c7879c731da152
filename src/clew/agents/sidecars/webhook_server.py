"""Serve the webhook that changes Pods, with certificates that it renews itself.

The certificate is in a Secret that all replicas share: one that finds it missing or about to end
makes a new one, the others take it over. A renewed certificate is used for new connections at once.
"""

from __future__ import annotations

import logging
import ssl
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from clew.agents.sidecars.admission import MAX_BODY_BYTES, Change, Malformed, review
from clew.agents.sidecars.certificates import (
    AUTHORITIES,
    CERTIFICATE,
    KEY,
    issue,
    needs_renewal,
    utc_now,
)
from clew.errors import ClewError, Conflict, UsageError
from clew.kube.webhook_objects import WebhookObjects

_LOG = logging.getLogger("clew.agents")
_CHECK_SECONDS = 600.0
_RETRY_SECONDS = 5.0
_MAX_CONNECTIONS = 256
_STOP_SECONDS = 5


def ensure_certificate(objects: WebhookObjects) -> dict[str, bytes]:
    """The entries of the Secret with a certificate that lasts; the API server trusts it."""
    while True:
        found = objects.read_secret()
        entries = found.entries
        if needs_renewal(entries, objects.host, utc_now()):
            entries = issue(objects.host, utc_now(), entries)
            try:
                objects.write_secret(found, entries)
            except Conflict:  # another replica was faster
                continue
            _LOG.info("issued a certificate for %s", objects.host)
        objects.publish_authorities(entries[AUTHORITIES])
        return entries


class WebhookServer:
    def __init__(
        self, address: str, *, changes: Mapping[str, Change], objects: WebhookObjects
    ) -> None:
        """`address`: HOST:PORT. `changes`: what is done to Pods, by the path of the request."""
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"--listen {address} is not HOST:PORT", hint="--listen 0.0.0.0:8443")
        self._changes = changes
        self._objects = objects
        self._current = self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.sni_callback = self._choose_certificate
        self._config = uvicorn.Config(
            self._answer,
            host=host.strip("[]"),
            port=int(port),
            log_level="warning",
            access_log=False,
            server_header=False,
            interface="asgi3",
            lifespan="off",
            ws="none",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        self._config.load()
        self._config.ssl = self._tls
        self._server = uvicorn.Server(self._config)

    def run(self, stopping: threading.Event, *, ready: Callable[[], None]) -> None:
        """Serve until `stopping` is set; `ready` is called when the certificate is there."""
        entries = ensure_certificate(self._objects)
        self._use(entries, self._tls)
        thread = threading.Thread(target=self._server.run, name="clew-webhook", daemon=True)
        thread.start()
        ready()
        while thread.is_alive():
            wait = _CHECK_SECONDS
            try:
                found = ensure_certificate(self._objects)
                if found != entries:
                    self._use(found, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
                    entries = found
            except ClewError as error:
                _LOG.warning("the certificate cannot be checked: %s", error.message)
                wait = _RETRY_SECONDS
            if stopping.wait(wait):
                break
        self._server.should_exit = True
        thread.join()

    def _use(self, entries: dict[str, bytes], context: ssl.SSLContext) -> None:
        """Use this certificate for new connections. Python loads certificates from files only."""
        with tempfile.TemporaryDirectory() as place:
            certificate, key = Path(place) / CERTIFICATE, Path(place) / KEY
            certificate.write_bytes(entries[CERTIFICATE])
            key.touch(mode=0o600)
            key.write_bytes(entries[KEY])
            context.load_cert_chain(certificate, key)
        self._current = context

    def _choose_certificate(self, connection: ssl.SSLObject, _name: str, _: object) -> None:
        """Called in each handshake. A context that is in use is not changed: a handshake in between
        would meet a certificate with another one's key, and fail."""
        connection.context = self._current

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await (await self._review(Request(scope, receive)))(scope, receive, send)

    async def _review(self, request: Request) -> Response:
        if request.url.path == "/healthz":
            return Response("ok")
        change = self._changes.get(request.url.path)
        if change is None or request.method != "POST":
            return Response(status_code=404)
        body = bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise Malformed(f"it has more than {MAX_BODY_BYTES} bytes")
            return JSONResponse(review(bytes(body), change))
        except (Malformed, ClientDisconnect) as error:
            return Response(f"the body is not an AdmissionReview: {error}", status_code=400)
