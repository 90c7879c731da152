"""Serve the viewer with uvicorn until it is stopped."""

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

_MAX_CONNECTIONS = 512
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
    """Serve a directory until SIGTERM or SIGINT; `started` gets the address once it listens.

    `prefix`: the beginning of the path, which a proxy keeps. `names`, `access_digest`: see
    `origin_check`; the names count only on a loopback address.
    """
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
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    try:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listening.getsockname()[1]}{prefix}")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn raises it again when it has ended
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()
        volume.close()


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
