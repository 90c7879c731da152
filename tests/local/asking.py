"""Asks a server over a plain socket: exactly these bytes, and what comes back as it comes."""

from __future__ import annotations

import socket

from tests.local.serving import Server

WAIT = 60
"""Seconds for what must come; only a failing test waits that long."""


def raw(server: Server, address: str = "") -> socket.socket:
    """A connection to the server: to its own address, or another one of it."""
    host, port = (address or server.address).removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT)


def until(connection: socket.socket, wanted: bytes) -> bytes:
    found = b""
    while wanted not in found:
        data = connection.recv(65536)
        assert data, found
        found += data
    return found


def asking(server: Server, line: str, *more: str) -> bytes:
    words = (f"{line} HTTP/1.1", "Host: example.org:1", f"Authorization: Bearer {server.token}")
    return "\r\n".join((*words, *more, "", "")).encode()
