"""Send exact bytes to a server over a socket, and read its raw answer."""

import socket

from tests.local.server import Server

WAIT = 60
"""Seconds to wait; only a failing test waits that long."""


def connect(server: Server, address: str = "") -> socket.socket:
    """Connect to the server, at its own address or at another of it."""
    host, port = (address or server.address).removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT)


def receive_until(connection: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        data = connection.recv(65536)
        assert data, found
        found += data
    return found


def request_bytes(server: Server, line: str, *more: str) -> bytes:
    words = (f"{line} HTTP/1.1", "Host: example.org:1", f"Authorization: Bearer {server.token}")
    return "\r\n".join((*words, *more, "", "")).encode()
