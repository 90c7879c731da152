"""Data that passes between processes without a file: pipes, sockets, signals.

The trace shows at exec, fork and exit which process holds which end; from that follows which
process can have informed which. A process that holds both ends of a pipe counts only where no other
process is at the other end: shells create pipes for others, and build tools pass one to every child
as a job counter.
"""

import struct
from collections import defaultdict

from msgspec import Struct, field

from clew.documents.ids import Locator

READS, WRITES = 1, 2
"""Access bits of a descriptor."""


def peer_locator(address: bytes, socket_type: int) -> Locator | None:
    """The locator of a socket address; None: not a network peer."""
    import socket  # rarely needed

    if len(address) < 2:
        return None
    (family,) = struct.unpack_from("=H", address)
    scheme = "udp" if socket_type == socket.SOCK_DGRAM else "tcp"
    if family == socket.AF_INET and len(address) >= 8:
        port, raw = struct.unpack_from("!H4s", address, 2)
        return Locator(f"{scheme}://{socket.inet_ntop(socket.AF_INET, raw)}:{port}")
    if family == socket.AF_INET6 and len(address) >= 24:
        port, raw = struct.unpack_from("!H4x16s", address, 2)
        return Locator(f"{scheme}://[{socket.inet_ntop(socket.AF_INET6, raw)}]:{port}")
    if family == socket.AF_UNIX and len(address) > 2:
        path = address[2:]
        if path.startswith(b"\0"):
            return Locator(f"unix:@{path[1:].decode(errors='replace')}")
        return Locator(f"unix:{path.split(bytes(1))[0].decode(errors='replace')}")
    return None


class DataFlows(Struct, eq=False):
    """Collects the ends of pipes and sockets, and derives which process informed which."""

    _pipes: dict[bytes, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    _pairs: set[tuple[int, int, str]] = field(default_factory=set)
    _servers: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _clients: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def add_pipe_end(self, image: int, pipe: bytes, access: int) -> None:
        ends = self._pipes[pipe]
        ends[image] = ends.get(image, 0) | access

    def add_shared_socket(self, image: int, parent: int) -> None:
        """A child whose input or output is a socket from its parent exchanges data with it."""
        self._pairs |= {(image, parent, "socket"), (parent, image, "socket")}

    def add_signal(self, image: int, to: int, *, asks: bool) -> None:
        """Signal 0 (`asks`) only tests whether the other process exists: the sender is informed."""
        if image != to:
            self._pairs.add((image, to, "signal") if asks else (to, image, "signal"))

    def add(self, image: int, by: int, via: str) -> None:
        """Add a known flow from `by` to `image`."""
        self._pairs.add((image, by, via))

    def add_server(self, image: int, locator: Locator) -> None:
        self._servers[_any_address(locator)].add(image)

    def add_client(self, image: int, locator: Locator) -> None:
        self._clients[_any_address(locator)].add(image)

    def informed(self, forked: dict[int, int]) -> set[tuple[int, int, str]]:
        """Triples of the informed image, the informing image and the means. `forked` maps images
        without an exec to their parents: they use the pipes of the parent."""
        pairs = set(self._pairs)
        for ends in self._pipes.values():
            one_way = {image: access for image, access in ends.items() if access != READS | WRITES}
            writers = [image for image, access in one_way.items() if access == WRITES]
            readers = [image for image, access in one_way.items() if access == READS]
            for image, access in ends.items():
                parent = forked.get(image)
                if access == READS | WRITES and parent in ends:
                    pairs |= {(image, parent, "pipe"), (parent, image, "pipe")}
            holders_of_both = [image for image, access in ends.items() if access == READS | WRITES]
            pairs |= {
                (r, w, "pipe")
                for r in readers or holders_of_both
                for w in writers or holders_of_both
                if r != w and (r in one_way or w in one_way)
            }
        for locator, servers in self._servers.items():
            for server in servers:
                for client in self._clients.get(locator, set()) - {server}:
                    pairs |= {(server, client, "socket"), (client, server, "socket")}
        return pairs


def _any_address(locator: str) -> str:
    """Local addresses as one: a server bound to every address answers at each of them."""
    for local in ("://0.0.0.0:", "://[::]:", "://127.0.0.1:", "://[::1]:"):
        locator = locator.replace(local, "://*:")
    return locator
