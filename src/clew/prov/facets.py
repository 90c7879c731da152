"""The facets that Clew reads, with their types, and the check of a record's facets against them.

Facets are free-form JSON, and the rest of Clew reads the known ones without checking them. Unknown
facets are kept, because a newer recorder may write more; their size and depth are bounded.
"""

import math
from base64 import b64decode
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from clew.documents.ids import Uid
from clew.prov.fold import NEVER

MAX_DEPTH = 16
"""How deeply the values of an unknown facet are nested."""
MAX_VALUES = 100_000
"""Values in all facets of one event together."""
MAX_TEXT = 1 << 18
"""Characters of an argument, a variable or any text of a facet: twice what Linux allows."""
MAX_NAME = 1024
"""Characters of a name, a uid or a kind."""
MAX_LOCATOR = 1 << 14
"""Characters: a path has 4096 bytes, and each may be written as three characters."""
MAX_INTEGER = (1 << 63) - 1

Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Name = Annotated[str, Meta(max_length=MAX_NAME)]
Count = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
Number = Annotated[int, Meta(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Time = Annotated[int, Meta(ge=0, lt=NEVER)]
UserId = Annotated[int, Meta(ge=0, le=2**32 - 2)]
Path = Annotated[str, Meta(pattern=r"\A/", max_length=MAX_LOCATOR)]
ExecutionUid = Annotated[Uid, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Base64 = Annotated[
    str,
    Meta(
        pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z",
        max_length=MAX_TEXT,
    ),
]
VariableName = Annotated[str, Meta(pattern=r"\A[^=]*\Z", max_length=MAX_TEXT)]
MachineName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._-]{0,64}\Z")]
HostName = Annotated[str, Meta(pattern=r"\A(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}|\(none\)|)\Z")]
"""Linux reports `(none)` if no name was set."""


class User(TypedDict, total=False):
    name: Name
    uid: UserId
    gid: UserId
    groups: list[UserId]


class Cpu(TypedDict, total=False):
    architecture: Name
    model: Name
    microcode: Name
    flags: list[Name]
    count: Count
    usable: Count


class Stream(TypedDict):
    kind: Name
    path: NotRequired[Path]
    begin: NotRequired[Count]


class Pinned(TypedDict, total=False):
    clock: Time
    random: Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    serial: bool


class Git(TypedDict, total=False):
    commit: Name | None
    dirty: bool | None


class Package(TypedDict, total=False):
    requested: bool | None


class Output(TypedDict, total=False):
    stdout: tuple[Count, Count] | None
    stderr: tuple[Count, Count] | None
    places: dict[Annotated[str, Meta(pattern=r"\A[0-9]{1,9}\Z")], Number]


class Descriptor(msgspec.Struct, array_like=True, frozen=True):
    """An inherited descriptor. Only regular files have the last three values."""

    number: Count
    way: Count
    name: Text
    offset: Number = -1
    flags: Count = 0
    size: Number = -1


class Begun(TypedDict):
    """The inherited state of a process's program."""

    at: Time
    held: list[Descriptor]
    program: NotRequired[Text]
    standing: NotRequired[Text]
    sealed: NotRequired[dict[Text, Text]]
    output: NotRequired[Output]


class Facets(TypedDict, total=False):
    """The facets that Clew reads, of an execution (`started` and `ended`) or of a process."""

    argument_secrets: dict[Annotated[str, Meta(pattern=r"\A[0-9]{1,9}\Z")], list[Text | None]]
    begun: Begun
    boot: Name
    bytes: Count
    collection: ExecutionUid
    cpu: Cpu
    cuda: Name
    cudnn: Name
    cwd: Text
    driver: dict[Name, Name]
    git: Git | None
    gpu: list[dict[Name, Name]]
    hostname: HostName
    inherits: ExecutionUid
    inputs: Count
    kernel: dict[Name, Name]
    kind: Name
    libc: Name
    limits: dict[Name, tuple[Number | None, Number | None]]
    locale: dict[Name, Text]
    machine: MachineName
    masked: list[Name]
    memory: dict[Name, Count]
    network: bool
    new_bytes: Count
    os: dict[Name, Name]
    outputs: Count
    packages: dict[Text, Package]
    pinned: Pinned
    processes: Count
    redacted: list[Text]
    reused_from: Name | None
    sealed: dict[Text, Text]
    streams: dict[Name, Stream]
    timezone: Text
    typed: Count
    umask: Annotated[str, Meta(pattern=r"\A[0-7]{1,4}\Z")]
    user: User
    variables_b64: dict[VariableName, Base64]


class InvalidValue(Exception):
    """A value is not what it should be; the message says which, and why."""


def check_facets(facets: dict[str, Any]) -> None:
    """Check the known facets against `Facets`, and all of them against the bounds."""
    _check_values(facets)
    try:
        known = msgspec.convert(facets, Facets)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error).replace("`$", "`facets")) from None
    for name, stream in known.get("streams", {}).items():
        if stream["kind"] == "file" and "path" not in stream:
            raise InvalidValue(f"facets.streams: {name[:40]!r} is a file without a path")
    for raw in known.get("variables_b64", {}).values():
        if b"\0" in b64decode(raw):
            raise InvalidValue("facets.variables_b64: a value has a zero byte")
    if "begun" in known:
        for held in facets["begun"]["held"]:
            if len(held) not in (3, 6):
                raise InvalidValue("facets.begun: a descriptor in held has 3 or 6 values")


def _check_values(facets: dict[str, Any]) -> None:
    """Only what JSON can hold, of bounded size; MessagePack has more types."""
    remaining = MAX_VALUES
    waiting: list[tuple[str, Any, int]] = [("", facets, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, dict):
            for key, member in value.items():
                if not isinstance(key, str):
                    raise InvalidValue(f"facets.{name}: a key is not a text")
                check_text(f"facets.{name}", key, MAX_TEXT)
                waiting.append((name or ascii(key[:40])[1:-1], member, depth + 1))
            remaining -= len(value)
        elif isinstance(value, list):
            waiting.extend((name, member, depth + 1) for member in value)
            remaining -= len(value)
        elif isinstance(value, str):
            check_text(f"facets.{name}", value, MAX_TEXT)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidValue(f"facets.{name}: a number is not finite")
        elif isinstance(value, int):
            check_range(f"facets.{name}", value, -MAX_INTEGER, MAX_INTEGER)
        elif value is not None:
            raise InvalidValue(f"facets.{name}: a value is of a type that JSON does not have")
        if depth > MAX_DEPTH or remaining < 0:
            raise InvalidValue(f"facets.{name}: too large or nested too deeply")


def check_range(field: str, value: int | None, minimum: int, maximum: int) -> None:
    if value is not None and not minimum <= value <= maximum:
        raise InvalidValue(f"{field}: the number is out of range")


def check_text(field: str, value: str | None, max_length: int) -> None:
    if value is None:
        return
    if len(value) > max_length:
        raise InvalidValue(f"{field}: the text is longer than {max_length} characters")
    if "\0" in value:
        raise InvalidValue(f"{field}: the text has a zero byte")
