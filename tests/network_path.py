"""Locations at adjustable distances: a real network path, whose packets wait.

Packets to a location leave by a TUN device, wait in this program, and come back with their
addresses exchanged: the kernel of the same network namespace answers as the location. Exchanging
addresses does not change checksums. It takes the place of `tc netem`, which many kernels lack.
"""

import ctypes
import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

OWN = "10.99.0.1"
PORT = 7000
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x1, 0x1000
_CLONE_NEWNET = 0x40000000
_LARGEST = 65_536


class NetworkPath:
    """Runs in a network namespace: a new one, or that of a process."""

    def __init__(self, beside: int | None = None) -> None:
        enter = ["unshare", "--net"] if beside is None else ["nsenter", f"--target={beside}", "-n"]
        self._process = subprocess.Popen(
            [*enter, sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    @property
    def enter(self) -> tuple[str, ...]:
        """The words before a command that is to run in its namespace."""
        return ("nsenter", f"--target={self._process.pid}", "--net")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets of this thread are in its namespace. The loopback of before comes back after."""
        with (
            open(f"/proc/{self._process.pid}/ns/net") as inside,
            open("/proc/thread-self/ns/net") as before,
        ):
            _set_namespace(inside.fileno())
            try:
                yield
            finally:
                _set_namespace(before.fileno())

    def set_distance(self, location: str, ms: float | None) -> None:
        """The round-trip time to a location; None loses its packets."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{location} {-1 if ms is None else ms}\n")
        assert self._process.stdout.readline() == "set\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _set_namespace(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class _Waiting(NamedTuple):
    due: float
    number: int
    packet: bytes


def _open_tunnel() -> int:
    tunnel = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tunnel, _TUNSETIFF, struct.pack("16sH", b"path0", _IFF_TUN | _IFF_NO_PI))
    for words in (
        ("address", "add", f"{OWN}/24", "dev", "path0"),
        ("link", "set", "path0", "up"),
        ("link", "set", "lo", "up"),
    ):
        subprocess.run(["ip", *words], check=True)
    with open("/proc/sys/net/ipv4/ping_group_range", "w") as allowed:  # who may send ICMP echo
        allowed.write("0 2147483647")
    return tunnel


def _answer() -> None:
    """Accept connections, and close them."""
    with socket.create_server((OWN, PORT), backlog=64) as listener:
        _say("ready")
        while True:
            listener.accept()[0].close()


def _say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _carry(tunnel: int) -> None:
    distances: dict[bytes, float] = {}
    waiting: list[_Waiting] = []
    number = 0
    while True:
        timeout = max(0.0, waiting[0].due - time.monotonic()) if waiting else None
        ready, _, _ = select.select([tunnel, sys.stdin], [], [], timeout)
        if tunnel in ready:
            packet = os.read(tunnel, _LARGEST)
            source, target = packet[12:16], packet[16:20]
            ms = distances.get(target, -1)
            if packet[0] >> 4 == 4 and ms >= 0:
                number += 1
                back = packet[:12] + target + source + packet[20:]
                heapq.heappush(waiting, _Waiting(time.monotonic() + ms / 2000, number, back))
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            name, ms_text = line.split()
            distances[socket.inet_aton(name)] = float(ms_text)
            _say("set")
        while waiting and waiting[0].due <= time.monotonic():
            os.write(tunnel, heapq.heappop(waiting).packet)


if __name__ == "__main__":
    opened = _open_tunnel()
    threading.Thread(target=_answer, daemon=True).start()
    _carry(opened)
