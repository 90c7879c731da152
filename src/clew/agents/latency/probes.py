"""One round-trip time to an address: that of a TCP connection, or of an ICMP echo.

The kernel measures TCP: the time from SYN to SYN-ACK, without what this process waits for the
processor. A refused connection is no answer: a firewall nearby may have sent it.
"""

import os
import socket
import struct
import time
from collections.abc import Callable

from clew.placement.measurement.locations import ProbeAddress

TIMEOUT_SECONDS = 2.0

_TCP_INFO = struct.Struct("=8B24I")
_RTT = 8 + 15
"""The index of tcpi_rtt, in microseconds, in the kernel's struct tcp_info."""
_ECHO = struct.Struct("!BBHHH")
_PAYLOAD = b"clew agent latency"
_LARGEST_ANSWER = 2048


class ProbeFailed(Exception):
    """Its text is a word for metrics: resolve, timeout, refused, unreachable or permission."""


def resolve(address: ProbeAddress) -> Callable[[], float]:
    """A probe of this address, which returns milliseconds; its name is resolved once."""
    kind = socket.SOCK_STREAM if address.port is not None else socket.SOCK_DGRAM
    try:
        family, _, _, _, found = socket.getaddrinfo(address.host, address.port, type=kind)[0]
    except (OSError, UnicodeError) as error:
        raise ProbeFailed("resolve") from error
    probe = _echo if address.port is None else _connect
    return lambda: _measure(probe, family, found)


def _measure(probe: Callable[[int, object], float], family: int, address: object) -> float:
    try:
        return probe(family, address)
    except TimeoutError as error:
        raise ProbeFailed("timeout") from error
    except ConnectionRefusedError as error:
        raise ProbeFailed("refused") from error
    except PermissionError as error:
        raise ProbeFailed("permission") from error
    except OSError as error:
        raise ProbeFailed("unreachable") from error


def _connect(family: int, address: object) -> float:
    with socket.socket(family, socket.SOCK_STREAM) as probing:
        probing.settimeout(TIMEOUT_SECONDS)
        # Without lingering, closing leaves no connection behind in TIME_WAIT.
        probing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        probing.connect(address)  # type: ignore[arg-type]  # as getaddrinfo returned it
        info = probing.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    microseconds = _TCP_INFO.unpack(info)[_RTT]
    if not microseconds:  # the kernel does not measure a SYN that it had to repeat
        raise TimeoutError
    return float(microseconds) / 1000


def _echo(family: int, address: object) -> float:
    """Needs no privilege where net.ipv4.ping_group_range has our group."""
    v6 = family == socket.AF_INET6
    protocol = socket.getprotobyname("ipv6-icmp") if v6 else socket.IPPROTO_ICMP
    request, reply = (128, 129) if v6 else (8, 0)
    number = int.from_bytes(os.urandom(2))
    packet = _ECHO.pack(request, 0, 0, 0, number) + _PAYLOAD
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as probing:
        if not v6:  # the kernel computes that of ICMPv6, and sets the identifier of both
            packet = _ECHO.pack(request, 0, _checksum(packet), 0, number) + _PAYLOAD
        probing.connect(address)  # type: ignore[arg-type]  # as getaddrinfo returned it
        began = time.monotonic()
        probing.send(packet)
        while (left := began + TIMEOUT_SECONDS - time.monotonic()) > 0:
            probing.settimeout(left)
            answer = probing.recv(_LARGEST_ANSWER)
            ended = time.monotonic()
            if len(answer) >= _ECHO.size:
                kind, _, _, _, answered = _ECHO.unpack_from(answer)
                if kind == reply and answered == number:
                    return (ended - began) * 1000
    raise TimeoutError


def _checksum(packet: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(packet) // 2}H", packet))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF
