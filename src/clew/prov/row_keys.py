"""A row's id: 64 bits of the hash of what the thing is.

No row has to be read back to learn its id, so events fold in bulk; the same thing has the same
id in every database, so two graphs merge. The project is part of what is hashed, so one
database serves many projects without a row of one ever being a row of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from blake3 import blake3

from clew.documents.ids import Digest, Locator, Uid

if TYPE_CHECKING:
    from clew.prov.events import Observation


def key_function(project: Uid, kind: str) -> Callable[[str], int]:
    """The ids of one kind of thing in one project, as a function of the thing's own name."""
    prefix = f"{project}\0{kind}\0"

    def key(name: str) -> int:
        digest = blake3((prefix + name).encode("utf-8", "surrogatepass")).digest(length=8)
        return int.from_bytes(digest, "big", signed=True)

    return key


def project_key(project: Uid) -> int:
    return key_function(project, "project")("")


def activity_key(project: Uid, uid: Uid) -> int:
    return key_function(project, "activity")(uid)


def location_key(project: Uid, locator: Locator) -> int:
    return key_function(project, "location")(locator)


def version_name(locator: Locator, maker: Uid, ordinal: int) -> str:
    """The name of a version, for its key."""
    return f"{locator}\0{maker}\0{ordinal}"


def command_name(program: str, command: Sequence[str], cwd: str) -> str:
    """The name of a command in its directory, for its key."""
    return "\0".join((program, cwd, *command))


def with_maker_prefix(maker: int, key: int) -> int:
    """A version's id: its first 12 bits are its maker's.

    Versions one maker made then lie together in every table and index, and folding an execution
    writes a few pages instead of one for each version.
    """
    return (maker >> 52 << 52) | (key & (1 << 52) - 1)


def digest_bytes(digest: Digest) -> bytes:
    """A digest as it is stored: BLAKE3 as its 32 bytes, any other as its text."""
    name, _, digits = digest.partition(":")
    if name == "blake3" and len(digits) == 64:
        try:
            return bytes.fromhex(digits)
        except ValueError:
            pass
    return digest.encode()


def digest_text(stored: bytes | None) -> Digest | None:
    """The inverse of `digest_bytes`."""
    if stored is None:
        return None
    known = len(stored) == 32
    return Digest(f"blake3:{stored.hex()}" if known else stored.decode(errors="replace"))


def pack_looks(looks: Iterable[Observation], locations: Mapping[str, int]) -> bytes:
    """Looks as one value: MessagePack, an array of [kind, answer, location, location, …]. Looks in
    sequence with the same kind and answer share an array."""
    import msgspec  # slow to load, and most questions never fold

    groups: list[list[str | int]] = []
    group: list[str | int] = []
    group_kind = group_answer = None
    for kind, locator, answer in looks:
        if kind != group_kind or answer != group_answer:
            group_kind, group_answer = kind, answer
            group = [kind, answer]
            groups.append(group)
        group.append(locations[locator])
    return msgspec.msgpack.encode(groups)


def unpack_looks(packed: bytes) -> Iterator[tuple[str, int, str]]:
    """(kind, location, answer) of each look that `pack_looks` packed."""
    import msgspec

    for kind, answer, *locations in msgspec.msgpack.decode(packed):
        for location in locations:
            yield kind, location, answer
