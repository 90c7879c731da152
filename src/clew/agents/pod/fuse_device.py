"""The device plugin that gives containers /dev/fuse, and nothing else.

A container may only open devices that the kubelet knows of. The kubelet asks this program which
there are and what an allocation means, by gRPC over a socket in its directory. The messages are few
and small, so they are written here, as `k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1` defines them.
"""

import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc

from clew.errors import UsageError

_LOG = logging.getLogger("clew.agents")
PLUGINS: Final = Path("/var/lib/kubelet/device-plugins")
_KUBELET = "kubelet.sock"
_VERSION = b"v1beta1"
_CHECK_SECONDS = 2.0
_CALL_SECONDS = 10.0
_WORKERS = 4


class FuseDevice:
    """Registers with the kubelet, and again when that was restarted."""

    def __init__(self, resource: str, *, count: int, name: str, plugins: Path = PLUGINS) -> None:
        """`count`: how many containers of the node may have the device at once. `name`: of the
        socket, in the directory `plugins`."""
        if not plugins.is_dir():
            raise UsageError(f"{plugins} is not the directory of the kubelet for device plugins")
        self._resource = resource
        self._plugins = plugins
        self._socket = plugins / f"{name}.sock"
        self._devices = b"".join(
            _field(1, _field(1, b"fuse-%d" % number) + _field(2, b"Healthy"))
            for number in range(count)
        )
        self._stopping = threading.Event()

    def run(self, stopping: threading.Event) -> None:
        """Serve until `stopping` is set."""
        self._stopping = stopping
        while not stopping.is_set():
            try:
                self._serve(stopping)
            except (OSError, grpc.RpcError) as error:
                _LOG.warning("not registered with the kubelet, trying again: %s", error)
                stopping.wait(_CHECK_SECONDS)

    def _serve(self, stopping: threading.Event) -> None:
        """Until the kubelet is another one: it removes all sockets when it starts."""
        kubelet = self._identify_kubelet()
        self._socket.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(_WORKERS))
        server.add_generic_rpc_handlers((self._handlers(),))
        server.add_insecure_port(f"unix:{self._socket}")
        server.start()
        try:
            self._register()
            _LOG.info("the kubelet offers %s", self._resource)
            while not stopping.wait(_CHECK_SECONDS):
                if self._identify_kubelet() != kubelet or not self._socket.exists():
                    return
        finally:
            server.stop(0)

    def _identify_kubelet(self) -> tuple[int, int]:
        found = os.stat(self._plugins / _KUBELET)
        return found.st_ino, found.st_ctime_ns

    def _register(self) -> None:
        request = (
            _field(1, _VERSION)
            + _field(2, self._socket.name.encode())
            + _field(3, self._resource.encode())
        )
        with grpc.insecure_channel(f"unix:{self._plugins / _KUBELET}") as channel:
            channel.unary_unary("/v1beta1.Registration/Register")(request, timeout=_CALL_SECONDS)

    def _handlers(self) -> Any:
        methods = {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(_answer_nothing),
            "GetPreferredAllocation": grpc.unary_unary_rpc_method_handler(_answer_nothing),
            "PreStartContainer": grpc.unary_unary_rpc_method_handler(_answer_nothing),
            "Allocate": grpc.unary_unary_rpc_method_handler(_allocate),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list_devices),
        }
        return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)

    def _list_devices(self, _: bytes, context: Any) -> Iterator[bytes]:
        """They never change; the stream ends with the kubelet or this program."""
        ended = threading.Event()
        context.add_callback(ended.set)
        yield self._devices
        while not ended.wait(_CHECK_SECONDS) and not self._stopping.is_set():
            pass


def _answer_nothing(_: bytes, __: Any) -> bytes:
    return b""


def _allocate(request: bytes, _: Any) -> bytes:
    """The device itself, for each container of the request."""
    path = b"/dev/fuse"
    device = _field(3, _field(1, path) + _field(2, path) + _field(3, b"rw"))
    return _field(1, device) * count_fields(request)


def count_fields(message: bytes) -> int:
    """The number of fields of a message that has only fields with a length."""
    count = offset = 0
    while offset < len(message):
        _, offset = _read_number(message, offset)
        length, offset = _read_number(message, offset)
        count, offset = count + 1, offset + length
    return count


def _read_number(message: bytes, offset: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[offset]
        number |= (byte & 0x7F) << shift
        offset, shift = offset + 1, shift + 7
        if byte < 0x80:
            return number, offset


def _field(number: int, value: bytes) -> bytes:
    """A field of a message of protocol buffers, with its length."""
    length = bytearray()
    rest = len(value)
    while rest >= 0x80:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes([number << 3 | 2]) + bytes(length) + value
