"""Listening: from the command to the last answer."""

import re
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from clew.errors import ClewError, UsageError
from clew.viewer.app import Viewer
from clew.viewer.origin_check import is_local
from clew.viewer.volume import Volume

_AT_ONCE = 512
"""Maximum number of connections; more get 503."""
_GRACE_SECONDS = 10


def serve(
    directory: Path,
    *,
    prefix: str,
    host: str,
    port: int,
    names: Sequence[str],
    access_digest: str | None = None,
    started: Callable[[str], None],
) -> None:
    """Show a directory until told to end; `started` is told the address once it listens. Behind
    a proxy that keeps the address, `prefix` is what the address begins with; `names`: others that
    it is asked under, where it listens to this machine alone; `access_digest`: see `guarding`."""
    if access_digest is not None and not re.fullmatch(r"[0-9a-f]{64}", access_digest):
        raise UsageError("--access-digest is a SHA-256 in 64 hexadecimal digits")
    if not prefix.startswith("/") or not prefix.isascii() or any(c in prefix for c in "?#% "):
        raise UsageError(f"--prefix is the beginning of an address, as /files/; not {prefix}")
    prefix = prefix if prefix.endswith("/") else f"{prefix}/"
    volume = Volume(directory)
    listening = _listen(host, port)
    known = frozenset(names) if is_local(host) else None
    config = uvicorn.Config(
        Viewer(volume, prefix, known, access_digest),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        limit_concurrency=_AT_ONCE,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    try:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listening.getsockname()[1]}{prefix}")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ended)  # which uvicorn sends once more, at its end
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()
        volume.close()


def _ended(*_: object) -> None:
    """All is put in order after the last answer."""


def _listen(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        raise ClewError(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="clew viewer --port 0"
        ) from error
    return made
