"""Data that passes between processes without a file: pipes, sockets, signals.

Who holds which end of what is seen at exec, at fork and at exit; from that follows who could
have told whom. A process that holds both ends of a pipe is a party to it only where nobody
else is at the other end: shells make the pipes of others, and build tools hand one to every
child to count jobs with.
"""

from __future__ import annotations

import struct
from collections import defaultdict

from msgspec import Struct, field

READS, WRITES = 1, 2


def peer_locator(address: bytes, socket_type: int) -> str | None:
    """A socket address as a locator; None where it is no network peer."""
    import socket  # only where there are any

    if len(address) < 2:
        return None
    (family,) = struct.unpack_from("=H", address)
    scheme = "udp" if socket_type == socket.SOCK_DGRAM else "tcp"
    if family == socket.AF_INET and len(address) >= 8:
        port, raw = struct.unpack_from("!H4s", address, 2)
        return f"{scheme}://{socket.inet_ntop(socket.AF_INET, raw)}:{port}"
    if family == socket.AF_INET6 and len(address) >= 24:
        port, raw = struct.unpack_from("!H4x16s", address, 2)
        return f"{scheme}://[{socket.inet_ntop(socket.AF_INET6, raw)}]:{port}"
    if family == socket.AF_UNIX and len(address) > 2:
        path = address[2:]
        if path.startswith(b"\0"):
            return f"unix:@{path[1:].decode(errors='replace')}"
        return f"unix:{path.split(bytes(1))[0].decode(errors='replace')}"
    return None


class DataFlows(Struct, eq=False):
    """Collects ends, and answers who informed whom."""

    _pipes: dict[bytes, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _pairs: set[tuple[int, int, str]] = field(default_factory=set)
    _bound: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _asked: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def holds(self, image: int, pipe: bytes, way: int) -> None:
        ends = self._pipes[pipe]
        ends[image] = ends.get(image, 0) | way

    def shares_socket(self, image: int, parent: int) -> None:
        """A child that got a socket from its parent as its input or output talks with it."""
        self._pairs |= {(image, parent, "socket"), (parent, image, "socket")}

    def signalled(self, image: int, to: int, *, asks: bool) -> None:
        """Signal 0 only asks whether the other is there."""
        if image != to:
            self._pairs.add((image, to, "signal") if asks else (to, image, "signal"))

    def told(self, image: int, by: int, via: str) -> None:
        """It is known that `by` passed something to `image`."""
        self._pairs.add((image, by, via))

    def bound(self, image: int, locator: str) -> None:
        self._bound[_anyone(locator)].add(image)

    def connected(self, image: int, locator: str) -> None:
        self._asked[_anyone(locator)].add(image)

    def informed(self, forked: dict[int, int]) -> set[tuple[int, int, str]]:
        """(who learnt, from whom, by what). `forked`: images that never became another program,
        and their parents: these use the pipes they were born with."""
        pairs = set(self._pairs)
        for ends in self._pipes.values():
            one_way = {image: way for image, way in ends.items() if way != READS | WRITES}
            writers = [image for image, way in one_way.items() if way == WRITES]
            readers = [image for image, way in one_way.items() if way == READS]
            for image, way in ends.items():
                parent = forked.get(image)
                if way == READS | WRITES and parent in ends:
                    pairs |= {(image, parent, "pipe"), (parent, image, "pipe")}
            makers = [image for image, way in ends.items() if way == READS | WRITES]
            pairs |= {
                (r, w, "pipe")
                for r in readers or makers
                for w in writers or makers
                if r != w and (r in one_way or w in one_way)
            }
        for locator, servers in self._bound.items():
            for server in servers:
                for client in self._asked.get(locator, set()) - {server}:
                    pairs |= {(server, client, "socket"), (client, server, "socket")}
        return pairs


def _anyone(locator: str) -> str:
    """A server bound to every address answers at each of this machine's."""
    for everywhere in ("://0.0.0.0:", "://[::]:", "://127.0.0.1:", "://[::1]:"):
        locator = locator.replace(everywhere, "://*:")
    return locator
