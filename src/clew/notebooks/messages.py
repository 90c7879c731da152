"""What a kernel and its recorder tell each other: JSON documents, each with its length before."""

import socket
import struct

import msgspec

from clew.errors import RecordingFailed

_LENGTH = struct.Struct("<I")
_LARGEST = 256 << 20


class CellDocument(msgspec.Struct, frozen=True):
    """What a cell needed beyond its question, and what it left."""

    needs: dict[str, str]
    """Versions of variables, as in `Begin.shared`, that must be the same for a reuse."""
    deleted: list[str]
    process: dict[str, str]
    """The states of the process that it changed, as they are after it."""
    imports: list[str]
    writes: dict[str, str]
    """The versions of variables after it."""
    unsaved: str | None = None
    """Why it cannot be reused."""


class Ready(msgspec.Struct, frozen=True, tag_field="kind", tag="ready"):
    """The kernel has started."""

    python: str


class Begin(msgspec.Struct, frozen=True, tag_field="kind", tag="begin"):
    """A cell is about to run: what it depends on."""

    cell: str
    code: str
    key: str
    """The hash of its syntax tree."""
    reads: dict[str, str]
    """The versions of the variables that it can read, by their names; those that share objects have
    one version together."""
    shared: dict[str, str]
    """The versions of these with all others that share objects with them."""
    process: dict[str, str]
    never: str | None = None
    """Why it has to run, whatever was recorded."""


class Run(msgspec.Struct, frozen=True, tag_field="kind", tag="run"):
    """The cell could not be reused and runs."""

    cell: str
    why: str


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """A cell has run. Its variables and outputs are in the spool."""

    cell: str
    status: str
    seconds: float
    document: CellDocument


Message = Ready | Begin | Run | End

_decoder = msgspec.json.Decoder(Message)


def receive(link: socket.socket) -> Message | None:
    """The next message; None if the kernel has ended."""
    head = _receive(link, _LENGTH.size)
    if head is None:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > _LARGEST:
        raise RecordingFailed("the kernel sent a message that is too long")
    data = _receive(link, size)
    return None if data is None else _decoder.decode(data)


def send(link: socket.socket, document: object) -> None:
    data = msgspec.json.encode(document)
    link.sendall(_LENGTH.pack(len(data)) + data)


def _receive(link: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            part = link.recv(min(size - len(data), 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        data += part
    return bytes(data)
