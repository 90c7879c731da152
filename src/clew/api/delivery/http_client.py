"""An HTTP client for one server: one connection per thread; failures become Clew errors.

No message ever holds the token. A server that is busy is asked again for a little while, as it
wishes; one that is not there, or does not answer in time, is Unreachable.

The delivery after `exec`, which the user did not request, has a limit for all requests together:
name resolution, connecting, sending, and an answer that arrives byte by byte all count.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from clew.errors import ClewError, Damaged, NotAllowed, SecretsNeeded, UsageError
from clew.settings import Settings
from clew.store.errors import Unreachable

RETRY_SECONDS = 5.0
"""Seconds during which requests to an overloaded server are retried."""
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_KEEP_ALIVE_SECONDS = 20.0
"""Seconds after which an idle connection is not reused."""
_CHUNK_BYTES = 1 << 18
"""Bytes that are read or sent at a time; the time-out applies to each."""
_MAX_ANSWER_BYTES = 1 << 30
"""The limit for an answer that is read into memory."""
_MAX_LINE_BYTES = 128 << 20
"""The limit for one line of an answer."""
_EXIT_STATUSES = {400: 2, 422: 2, 403: 4, 404: 5}


Query = Mapping[str, str] | Sequence[tuple[str, str]]
"""The parameters of a request; a sequence may repeat a name."""


class Server:
    """The server that CLEW_SERVER names."""

    def __init__(self, address: str, token: str | None, *, limit: float | None = None) -> None:
        """`limit`: seconds that all requests together may wait for the server."""
        parts = urlsplit(address if "://" in address else f"http://{address}")
        try:
            self._port = parts.port
        except ValueError:
            self._port = None
            parts = parts._replace(netloc="")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                "CLEW_SERVER is not the address of a server",
                hint="CLEW_SERVER=http://127.0.0.1:8100",
            )
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._path = parts.path.rstrip("/")
        self._token = token or parse_qs(parts.query).get("token", [None])[0]
        host = f"[{self._host}]" if ":" in self._host else self._host
        port = f":{self._port}" if self._port else ""
        self.url = f"{parts.scheme}://{host}{port}{self._path}"
        """The address without the token, for messages."""
        self._local = threading.local()
        self._limit = limit
        self._waited = 0.0

    @property
    def page(self) -> str:
        """The address for a browser, with the token."""
        return f"{self.url}/?token={quote(self._token, safe='')}" if self._token else f"{self.url}/"

    def json(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        query: Query | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> Any:
        """Send a request with a JSON document and decode the JSON answer."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"} if body else {}
        with self.open(method, path, body, headers=headers, query=query, seconds=seconds) as answer:
            return json.loads(answer.whole())

    def open(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> Response:
        """Send a request; the answer is read in chunks. An error answer raises its exception."""
        encoded = "&".join(
            f"{quote(name)}={quote(value)}"
            for name, value in (query.items() if isinstance(query, Mapping) else query or ())
        )
        target = f"{self._path}{path}{'?' if encoded else ''}{encoded}"
        until = time.monotonic() + self.left(RETRY_SECONDS)
        while True:
            response = self._request(method, target, body, dict(headers or {}), seconds)
            pause = _retry_seconds(response.headers.get("Retry-After"))
            if response.status not in (429, 503) or time.monotonic() + pause > until:
                break
            self._drain(response)
            with self.bounded():
                time.sleep(pause)
        if response.status >= 300:
            raise self._error(response)
        return Response(self, response)

    def unreachable(self, error: Exception) -> Unreachable:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        spent = self._limit is not None and self._waited >= self._limit
        self.hang_up()
        if spent or isinstance(error, TimeoutError):
            return Unreachable(
                f"{self.url} did not answer in time",
                hint="it may be overloaded or hang; see its log",
            )
        return Unreachable(
            f"{self.url} cannot be reached: {why}",
            hint="is clew server running there? check CLEW_SERVER",
        )

    def hang_up(self) -> None:
        connection = self._local.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()

    # -- one request

    def _request(
        self, method: str, target: str, body: bytes | None, headers: dict[str, str], seconds: float
    ) -> http.client.HTTPResponse:
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Length"] = str(len(body))
        try:
            connection = self._connection(seconds)
            with self.bounded():
                connection.request(method, target, _split_body(body), headers)
                return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        local = self._local.__dict__
        if time.monotonic() - local.get("used", 0) > _KEEP_ALIVE_SECONDS:
            self.hang_up()
        connection: http.client.HTTPConnection | None = local.get("connection")
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = kind(self._host, self._port, timeout=_CONNECT_SECONDS)
            self._connect(connection)
            local["connection"] = connection
        local["socket"] = connection.sock
        if connection.sock is not None:
            connection.sock.settimeout(self.left(seconds))
        return connection

    def _connect(self, connection: http.client.HTTPConnection) -> None:
        """Connect; with a limit in a thread, since nothing else can interrupt name resolution."""
        if self._limit is None:
            connection.connect()
            return
        failures: list[Exception] = []

        def connect() -> None:
            try:
                connection.connect()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=connect, daemon=True)
        with self.bounded():
            thread.start()
            thread.join(self.left(_CONNECT_SECONDS))
        if thread.is_alive():
            raise TimeoutError
        if failures:
            raise failures[0]

    def left(self, seconds: float) -> float:
        """`seconds`, or the time left of the limit if that is shorter."""
        if self._limit is None:
            return seconds
        if self._waited >= self._limit:
            raise self.unreachable(TimeoutError())
        return min(seconds, self._limit - self._waited)

    @contextlib.contextmanager
    def bounded(self) -> Iterator[None]:
        """Count the time of the body against the limit, and cut the connection when it is over."""
        if self._limit is None:
            yield
            return
        timer = threading.Timer(
            self.left(_ANSWER_SECONDS), _shut_down, [self._local.__dict__.get("socket")]
        )
        timer.daemon = True
        begun = time.monotonic()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._waited += time.monotonic() - begun

    def _drain(self, response: http.client.HTTPResponse) -> bytes:
        try:
            with self.bounded():
                data = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(error) from error
        self.done(response)
        return data

    def done(self, response: http.client.HTTPResponse) -> None:
        """Keep the connection of an answer for the next request, if it was read to the end."""
        if response.will_close or not response.isclosed():
            self.hang_up()
        else:
            self._local.used = time.monotonic()

    def _error(self, response: http.client.HTTPResponse) -> ClewError:
        if response.status == 401:
            self.hang_up()
            return NotAllowed(
                f"{self.url} does not accept this token"
                if self._token
                else f"{self.url} needs a token",
                hint="set CLEW_TOKEN to the token that clew server printed there",
            )
        try:
            problem = json.loads(self._drain(response))
            return error_from(
                str(problem["code"]), problem["title"], problem["detail"], response.status
            )
        except (ValueError, KeyError, TypeError):
            return ClewError(
                f"{self.url} answers {response.status} {response.reason}",
                hint="is it a Clew server of the same version? check CLEW_SERVER",
            )


class Response:
    """The answer of a server, to be read to its end within a `with`."""

    def __init__(self, server: Server, response: http.client.HTTPResponse) -> None:
        self._server = server
        self._response = response

    def header(self, name: str) -> str:
        return self._response.headers.get(name, "")

    def whole(self, *, most: int = _MAX_ANSWER_BYTES) -> bytes:
        """The complete answer; an error if it is longer than `most` bytes."""
        body = bytearray()
        with self._server.bounded():
            for piece in self.pieces():
                body += piece
                if len(body) > most:
                    self._server.hang_up()
                    raise Damaged(f"{self._server.url} answers with more than {most} bytes")
        return bytes(body)

    def line(self) -> bytes:
        """The next line; empty at the end."""
        try:
            line = self._response.readline(_MAX_LINE_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            raise self._server.unreachable(error) from error
        if len(line) > _MAX_LINE_BYTES:
            self._server.hang_up()
            raise Damaged(
                f"{self._server.url} answers with a line of more than {_MAX_LINE_BYTES} bytes"
            )
        return line

    def pieces(self) -> Iterator[bytes]:
        try:
            while piece := self._response.read1(_CHUNK_BYTES):
                yield piece
            if self._response.length:
                raise http.client.IncompleteRead(b"", self._response.length)
        except (OSError, http.client.HTTPException) as error:
            raise self._server.unreachable(error) from error

    def __enter__(self) -> Response:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.done(self._response)


def connect_server(settings: Settings, token: Path | None, *, limit: float | None = None) -> Server:
    """The server of the settings; for one on this machine, the file `token` is the default token.
    `limit`: see `Server`."""
    assert settings.server is not None
    server = Server(settings.server, settings.token, limit=limit)
    if server._token is None and token is not None and _is_loopback(server._host):
        with contextlib.suppress(OSError):
            server._token = token.read_text().strip()
    return server


def error_from(
    code: str, message: str, hint: str, status: int, secrets: Iterable[str] = ()
) -> ClewError:
    """The exception for an error that a server reported."""
    kind = _error_types(ClewError).get(code)
    if kind is SecretsNeeded:
        return SecretsNeeded(message, hint=hint, names=map(str, secrets))
    if kind is not None:
        return kind(message, hint=hint)
    error = ClewError(message, hint=hint)
    error.code, error.exit_status = code, _EXIT_STATUSES.get(status, ClewError.exit_status)
    return error


def _error_types(kind: type[ClewError]) -> dict[str, type[ClewError]]:
    types = {kind.code: kind}
    for below in kind.__subclasses__():
        types = {**_error_types(below), **types}
    return types


def _split_body(body: bytes | None) -> Iterator[bytes] | None:
    if body is None:
        return None
    view = memoryview(body)
    return (bytes(view[at : at + _CHUNK_BYTES]) for at in range(0, len(view), _CHUNK_BYTES))


def _shut_down(connected: socket.socket | None) -> None:
    if connected is not None:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _retry_seconds(text: str | None) -> float:
    return float(text) if text and text.isdigit() else RETRY_SECONDS + 1


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
