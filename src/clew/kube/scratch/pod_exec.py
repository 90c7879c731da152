"""Run a program in a container of a Pod, with input and output, as `kubectl exec` does.

A WebSocket with the subprotocol of Kubernetes: the first byte of a message is its channel. Needs
no more of the cluster than the kubelet, and no network to the Pod.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from clew.errors import Unavailable
from clew.kube.backend.rest_client import resource_path
from clew.kube.objects import dig
from clew.kube.scratch.scratch_client import ScratchClient

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _RESULT, _CLOSE = 0, 1, 2, 3, 255
_PIECE = 128 << 10
_MAX_ERROR = 4000


class ProgramFailed(Exception):
    """The program ended with another status than 0; the message is the end of its stderr."""


def run_program(
    client: ScratchClient,
    namespace: str,
    pod: str,
    command: Sequence[str],
    given: Iterable[bytes],
    *,
    most: int,
) -> bytes:
    """What a program prints; `given` is its input. Unavailable if it prints more than `most`."""
    path = resource_path("Pod", namespace, pod) + "/exec"
    query = [("command", word) for word in command]
    query += [(name, "true") for name in ("stdin", "stdout", "stderr")]
    with client.connect_websocket(path, query, _PROTOCOLS) as connection:
        try:
            for piece in given:
                for at in range(0, len(piece), _PIECE):
                    connection.send(bytes([_STDIN]) + piece[at : at + _PIECE])
            if connection.subprotocol == _PROTOCOLS[0]:
                connection.send(bytes([_CLOSE, _STDIN]))
        except ConnectionClosed:
            pass  # it ended before it had read everything: the result says why
        return _read_result(connection, most)


def _read_result(connection: ClientConnection, most: int) -> bytes:
    printed: list[bytes] = []
    size = 0
    errors = b""
    for channel, data in _messages(connection):
        if channel == _STDOUT:
            size += len(data)
            if size > most:
                raise Unavailable("a program in the scratch namespace prints too much")
            printed.append(data)
        elif channel == _STDERR:
            errors = (errors + data)[-_MAX_ERROR:]
        elif channel == _RESULT:
            result = json.loads(data)
            if dig(result, "status") == "Success":
                return b"".join(printed)
            text = errors.decode(errors="replace").strip()
            raise ProgramFailed(text or str(dig(result, "message")))
    raise Unavailable(
        "the connection to a Pod in the scratch namespace broke", hint="run the command again"
    )


def _messages(connection: ClientConnection) -> Iterator[tuple[int, bytes]]:
    try:
        for message in connection:
            data = message.encode() if isinstance(message, str) else message
            if data:
                yield data[0], data[1:]
    except ConnectionClosed:
        return
