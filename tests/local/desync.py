"""Requests that two HTTP servers may understand differently, and a real nginx to send them to.

Each attack hides a second request, for SMUGGLED, in the body or the head of a first one. A proxy is
safe if the server behind it never sees that second request, and if the next client gets the answer
to its own request.
"""

import itertools
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.wait import wait_until

NGINX = "/usr/sbin/nginx"
SMUGGLED = b"smuggled"
HIDDEN = b"GET /notebook/me/web/smuggled HTTP/1.1\r\nHost: x\r\nX-Rest: "

CODINGS = (
    b"Transfer-Encoding: chunked",
    b"transfer-encoding: Chunked",
    b"Transfer-Encoding:chunked",
    b"Transfer-Encoding:\tchunked",
    b"Transfer-Encoding: chunked ",
    b"Transfer-Encoding : chunked",
    b"Transfer-Encoding\t: chunked",
    b" Transfer-Encoding: chunked",
    b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunkedx",
    b"Transfer-Encoding: chunked, identity",
    b"Transfer-Encoding: identity, chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, chunked",
    b"Transfer-Encoding: chunked;q=1",
    b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: identity",
    b"Transfer-Encoding: ",
    b"Transfer-Encoding: \x0bchunked",
    b"Transfer-Encoding: chunked\x00",
    b"Transfer-Encoding: chunked\x0c",
    b"Transfer-Encoding: \xa0chunked",
    b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding: x\r\n chunked",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    b"X: y\nTransfer-Encoding: chunked",
    b"X: y\rTransfer-Encoding: chunked",
    b"Transfer_Encoding: chunked",
    b"Transfer-Encodin\x67\x00: chunked",
    b"TE: chunked",
)
LENGTHS = (
    b"Content-Length: %d",
    b"content-length: %d",
    b"Content-Length:%d",
    b"Content-Length : %d",
    b"Content-Length: +%d",
    b"Content-Length: -%d",
    b"Content-Length: 0%d",
    b"Content-Length: 0x%x",
    b"Content-Length: %d,0",
    b"Content-Length: 0, %d",
    b"Content-Length: %d.0",
    b"Content-Length: %d\x00",
    b"Content-Length: %d e",
    b"Content-Length:\r\n %d",
    b"Content-Length: 0\r\nContent-Length: %d",
    b"Content-Length: %d\r\nContent-Length: 0",
    b"Content-Length: %d\r\nContent-Length: %d",
    b"X: y\nContent-Length: %d",
    b"X: y\rContent-Length: %d",
    b"Content_Length: %d",
    b"Content-Length: 18446744073709551616%d",
    b"",
)
CONNECTIONS = (
    b"",
    b"Connection: content-length",
    b"Connection: close, Content-Length",
    b"Connection: transfer-encoding",
    b"Connection: host",
    b"Connection: host\r\nConnection: content-length, transfer-encoding",
    b"Connection: keep-alive, content-length, host\r\nKeep-Alive: 1",
    b"Connection:content-length,",
    b"Connection: \tCONTENT-LENGTH\t, x",
    b"Connection: upgrade, content-length\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ",
    b"Proxy-Connection: content-length",
)
HEADS = (
    b"X-Own: a\r\n\r\n" + HIDDEN,  # pipelining: a second request, which the client itself made
    b"X-Own: a\n\n" + HIDDEN,
    b"X-Own: a\r\r" + HIDDEN,
    b"X-Own: a\rHost: b",
    b"X-Own: \x00",
    b"X-Own\r\n: a",
    b"X-Own: a\r\n b: c",
    b"Host: other.example",
    b"Host: a:bad",
    b"Host: [",
    b"Host: [::::]",
    b"Host: a@b",
    b"Host: a/b",
    b"Expect: 100-continue",
    b"Expect: 200-ok",
    b"Trailer: Content-Length",
)
METHODS = (b"POST", b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"PUT")


def attack(method: bytes, *, length: bytes, coding: bytes, connection: bytes, token: str) -> bytes:
    """One request, whose body holds another where either of the two lengths is believed alone."""
    hidden = HIDDEN + b"\r\n\r\n"
    body = b"0\r\n\r\n" + hidden if coding else hidden
    stated = length % ((len(body),) * length.count(b"%")) if b"%" in length else length
    head = [
        method + b" /notebook/me/web/outer HTTP/1.1",
        b"Host: example.org",
        b"Authorization: Bearer " + token.encode(),
        *(line for line in (connection, stated, coding) if line),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def sample(token: str) -> list[bytes]:
    """Every spelling once or twice: against the plain form of the other header."""
    plain = LENGTHS[0]
    found = [
        attack(b"POST", length=plain, coding=one, connection=b"", token=token) for one in CODINGS
    ]
    for length in LENGTHS:
        for coding in (b"", CODINGS[0]):
            found.append(attack(b"POST", length=length, coding=coding, connection=b"", token=token))
    for connection, method in itertools.product(CONNECTIONS, METHODS):
        found.append(attack(method, length=plain, coding=b"", connection=connection, token=token))
    return found + [
        attack(b"POST", length=plain, coding=b"", connection=head, token=token)
        for head in HEADS[1:]
    ]


def every(token: str) -> Iterator[bytes]:
    for method, length, coding, connection in itertools.product(
        METHODS, LENGTHS, (b"", *CODINGS), CONNECTIONS
    ):
        yield attack(method, length=length, coding=coding, connection=connection, token=token)


def send(address: tuple[str, int], data: bytes, token: str) -> bytes:
    """Send the bytes, then an honest request on the same connection; all that is answered."""
    last = (
        f"GET /notebook/me/web/last HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    )
    found = b""
    with suppress(OSError), socket.create_connection(address, timeout=5) as connection:
        connection.sendall(data + last.encode())
        while piece := connection.recv(65536):
            found += piece
    return found


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[int, Path]]:
    """A real nginx that answers with the path it was asked for; its port and its access log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder.mkdir()
    log, settings = folder / "access.log", folder / "nginx.conf"
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    settings.write_text(
        f"""
daemon off; pid {folder}/pid; worker_processes 1; error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
  log_format asked '$connection "$request" $status';
  access_log {log} asked;
  keepalive_requests 100000;
  {temporary}
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "$request_method $request_uri"; }} }}
}}
"""
    )
    with subprocess.Popen([NGINX, "-e", f"{folder}/error.log", "-c", settings]) as process:

        def answers() -> bool:
            assert process.poll() is None, (folder / "error.log").read_text()
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            return False

        try:
            wait_until("nginx", answers)
            yield port, log
        finally:
            process.terminate()
            process.wait(60)
