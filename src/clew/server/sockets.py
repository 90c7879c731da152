"""The sockets that the server listens on: one for itself, and one for proxied applications."""

import socket
from collections.abc import Sequence

from clew.errors import ClewError

_BACKLOG = 2048
"""Connections that may wait to be accepted."""


def open_sockets(
    host: str, ports: Sequence[int], apps_port: int | None, *, has_apps: bool, command: str
) -> list[socket.socket]:
    """Listen on the first of `ports` that is free; with `has_apps`, also on `apps_port`, which is
    the next port if it is None. `command`: for the hint of the error, if none is free."""
    for port in ports:
        next_port = port + 1 if 0 < port < 65535 else 0
        try:
            return _open_both(host, port, next_port if apps_port is None else apps_port, has_apps)
        except _Taken as error:
            taken = error
    option = "--port" if taken.port == ports[-1] else "--apps-port"
    raise ClewError(
        f"cannot listen on {host}:{taken.port}: {taken.reason}", hint=f"{command} {option} 0"
    ) from taken


class _Taken(Exception):
    def __init__(self, port: int, reason: str) -> None:
        super().__init__(port)
        self.port = port
        self.reason = reason


def _open_both(host: str, port: int, apps_port: int, has_apps: bool) -> list[socket.socket]:
    first = _open(host, port)
    if not has_apps:
        return [first]
    try:
        return [first, _open(host, apps_port)]
    except _Taken:
        first.close()
        raise


def _open(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _Taken(port, error.strerror or str(error)) from error
    return listener


def bracket_ipv6(host: str) -> str:
    return f"[{host}]" if ":" in host else host
