"""Take over the layers that the containers of the Pod make.

`clew-mount` connects before a container's command runs: it names the container, asks for the map of
the users of its user namespace, and hands over each layer. The command runs when it has closed the
connection. `native/mount/sidecar_client.c` sends the messages.
"""

import errno
import logging
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from clew.agents.pod.served_layer import ServedLayer
from clew.witness.tracer_binary import MOUNT

_LOG = logging.getLogger("clew.agents")
_MAX_MESSAGE = 8192
_MAX_DESCRIPTORS = 3
_MAX_CONNECTIONS = 64
_CREDENTIALS = struct.Struct("iII")


@dataclass
class MountedVolume:
    """A volume with a layer."""

    point: bytes
    root: int
    layer: ServedLayer


@dataclass
class JoinedContainer:
    """A container whose command is about to run."""

    name: str
    uid: int
    gid: int
    process: int
    at: int
    volumes: list[MountedVolume] = field(default_factory=list)
    failures: dict[bytes, str] = field(default_factory=dict)
    """Why a volume has no layer, by its point; for all volumes under an empty one."""


class ContainerSocket:
    """Serves connections in threads; each container is given to `joined`."""

    def __init__(
        self,
        path: Path,
        joined: Callable[[JoinedContainer], None],
        is_selected: Callable[[str, bytes, int, int], bool],
    ) -> None:
        """`is_selected`: whether a container (its name, its user and group) may have a layer at a
        point."""
        self._joined = joined
        self._is_selected = is_selected
        self._connections: set[socket.socket] = set()
        self._path = path
        path.unlink(missing_ok=True)  # of a sidecar that was restarted
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def is_busy(self) -> bool:
        """Whether a container has connected that was not given to `joined` yet."""
        return bool(self._connections)

    def start(self) -> None:
        """Serve. The containers of the Pod start when the socket is there."""
        part = self._path.with_suffix(".part")
        part.unlink(missing_ok=True)
        self._socket.bind(os.fspath(part))
        part.chmod(0o666)  # whatever user a container has
        self._socket.listen(_MAX_CONNECTIONS)
        part.rename(self._path)
        threading.Thread(target=self._accept, name="clew-containers", daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            container = self._take_over(connection)
            if container is not None:
                self._joined(container)
        finally:
            self._connections.discard(connection)

    def _take_over(self, connection: socket.socket) -> JoinedContainer | None:
        container: JoinedContainer | None = None
        with connection, suppress(ConnectionError):  # it was killed
            while True:
                message, received, _, _ = socket.recv_fds(
                    connection, _MAX_MESSAGE, _MAX_DESCRIPTORS
                )
                if not message:
                    break
                kind, _, text = message.partition(b" ")
                agreed = False
                try:
                    if container is None and kind == b"container" and len(received) == 1:
                        container = self._begin(connection, text, received[0])
                        received.clear()
                        agreed = True
                    elif container is not None:
                        agreed = self._handle(container, kind, text, received)
                except OSError as error:
                    _LOG.warning("a layer is not served: %s", error)
                finally:
                    for descriptor in received:
                        os.close(descriptor)
                connection.send(b"ok" if agreed else b"no")
        return container

    def _begin(self, connection: socket.socket, text: bytes, process: int) -> JoinedContainer:
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, gid = _CREDENTIALS.unpack(found)
        _check_process(process)
        name = text.decode(errors="replace")
        return JoinedContainer(name, uid, gid, process, time.time_ns())

    def _handle(
        self, container: JoinedContainer, kind: bytes, text: bytes, received: list[int]
    ) -> bool:
        """Whether it was done; descriptors that are kept are taken out of `received`."""
        if kind == b"map" and len(received) == 1:
            return _map_identities(received[0], container)
        if kind == b"failed":
            why, _, point = text.partition(b"\n")
            container.failures[point] = why.decode(errors="replace")
            return True
        if kind != b"mount" or len(received) != _MAX_DESCRIPTORS:
            return False
        if not self._is_selected(container.name, text, container.uid, container.gid):
            return False
        device, root, mount = received
        layer = ServedLayer(device, root, mount, container.process)
        received.clear()
        container.volumes.append(MountedVolume(text, root, layer))
        return True


def _check_process(descriptor: int) -> None:
    """Raises OSError unless it is the descriptor of a process; it may be one that may not be
    signalled from here."""
    try:
        signal.pidfd_send_signal(descriptor, 0)
    except OSError as error:
        if error.errno == errno.EBADF:
            raise


def _map_identities(directory: int, container: JoinedContainer) -> bool:
    words = [str(MOUNT), "--map", str(directory), str(container.uid), str(container.gid)]
    return subprocess.run(words, pass_fds=[directory], check=False).returncode == 0
