"""The values that a record from another party may hold.

Facets are free-form, and the rest of Clew reads the known ones without checking them. So their
types are defined here, and `check_events` rejects an imported record before any of it is stored: a
known facet of another type, a number or a text out of its range, a malformed locator or path.
Unknown facets are kept, because a newer recorder may write more; their size and depth are bounded.
`docs/formats/events.md` lists the same rules for people who write events.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from posixpath import normpath
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from clew.errors import Rejected
from clew.prov.events import (
    Alias,
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.fold import NEVER
from clew.prov.locators import is_file_path

DEEPEST = 16
"""Documents in documents, in an unknown facet."""
MOST_VALUES = 100_000
"""Values of all facets of one event."""
LONGEST = 1 << 18
"""Characters of a word, a variable or any text of a facet: twice what Linux takes as one word."""
LONGEST_NAME = 1024
"""Characters of a name, a uid or a kind."""
LONGEST_LOCATOR = 1 << 14
"""Characters: a path has 4096 bytes, and each may be written as three characters."""
_LAST = (1 << 63) - 1

Text = Annotated[str, Meta(max_length=LONGEST)]
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Count = Annotated[int, Meta(ge=0, le=_LAST)]
Number = Annotated[int, Meta(ge=-_LAST, le=_LAST)]
Time = Annotated[int, Meta(ge=0, lt=NEVER)]
UserId = Annotated[int, Meta(ge=0, le=2**32 - 2)]
Path = Annotated[str, Meta(pattern=r"\A/", max_length=LONGEST_LOCATOR)]
Uid = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
Base64 = Annotated[
    str,
    Meta(
        pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z",
        max_length=LONGEST,
    ),
]
VariableName = Annotated[str, Meta(pattern=r"\A[^=]*\Z", max_length=LONGEST)]
MachineName = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._-]{0,64}\Z")]
HostName = Annotated[str, Meta(pattern=r"\A(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}|\(none\)|)\Z")]
"""`(none)` is what Linux says where no name was set."""


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
    """The last three are there for regular files only."""

    number: Count
    way: Count
    name: Text
    offset: Number = -1
    flags: Count = 0
    size: Number = -1


class Begun(TypedDict):
    """What the program of a process was started with."""

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
    collection: Uid
    cpu: Cpu
    cuda: Name
    cudnn: Name
    cwd: Text
    driver: dict[Name, Name]
    git: Git | None
    gpu: list[dict[Name, Name]]
    hostname: HostName
    inherits: Uid
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


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.ASCII)
_FILE = re.compile(r"file://[A-Za-z0-9._-]{0,64}(/.*)", re.ASCII | re.DOTALL)
_STREAM = re.compile(r"stream://[0-9a-f]{32}/(?:stdin|stdout|stderr)")
_DIGEST = re.compile(r"blake3:[0-9a-f]{64}")
_ANSWERS = {
    "absent": re.compile(r"[ -~]{0,64}"),
    "present": re.compile(r"[0-7]{1,6}|(?![0-9])[ -~]{0,64}"),
    "times": re.compile(r"[0-7]{1,6} -?[0-9]{1,19} -?[0-9]{1,19}"),
    "listing": re.compile(r"(?:blake3:[0-9a-f]{64})?"),
    "link": re.compile(r".{0,16384}", re.DOTALL),
    **dict.fromkeys(("made", "removed"), re.compile(r"[0-7]{1,6} [0-9]{1,19}(?: -?[0-9]{1,19})?")),
}
"""The answers of `looked` events, by kind; the system-call witness writes them."""
_WORD = re.compile(r"[!-~]+")


class _Invalid(Exception):
    """A value is not what it should be; the message says which, and why."""


def check_events(uid: str, events: Iterable[AnyEvent]) -> None:
    """Raise Rejected unless every event of the execution `uid` has valid values."""
    checker = _Checker()
    for event in events:
        try:
            checker.check(event)
        except _Invalid as error:
            kind = type(event).__name__.lower()
            raise Rejected(
                f"the record of {uid[:8]!r} is malformed: {error} (event {event.n}, {kind})",
                hint="nothing of this record was imported; see docs/formats/events.md",
            ) from None


class _Checker:
    """Checks the events of one record. Locators and uids recur: each is checked once."""

    def __init__(self) -> None:
        self._locators: set[str] = set()
        self._things: set[str] = set()
        self._uids: set[str] = set()

    def check(self, event: AnyEvent) -> None:
        _range("n", event.n, 0, _LAST)
        _range("at", event.at, 0, NEVER - 1)
        self._uid("execution", event.execution)
        check = _CHECKS.get(type(event))
        if check is not None:  # else of a type that only a newer Clew knows: it is not stored
            check(self, event)

    def _started(self, event: Started) -> None:
        self._uid("activity", event.activity)
        _word("kind", event.kind)
        if event.parent is not None:
            self._uid("parent", event.parent)
        for name in ("number", "pid"):
            _range(name, getattr(event, name), 0, _LAST)
        for name in ("agent", "name", "image", "node"):
            _text(name, getattr(event, name), LONGEST_NAME)
        for name in ("exe", "cwd"):
            _path(name, getattr(event, name))
        for word in event.command:
            _text("command", word, LONGEST)
        for name, value in event.environment.items():
            _text("environment", name, LONGEST)
            _text("environment", value, LONGEST)
            if "=" in name:
                raise _Invalid("environment: the name of a variable has no =")
        check_facets(event.facets)

    def _ended(self, event: Ended) -> None:
        self._uid("activity", event.activity)
        _range("status", event.status, -(2**31), 2**31 - 1)
        _range("signal", event.signal, 0, 2**31 - 1)
        for name, value in event.usage.items():
            _text("usage", name, LONGEST_NAME)
            if not (math.isfinite(value) and 0 <= value <= _LAST):
                raise _Invalid(f"usage: {name[:40]!r} is out of range")
        check_facets(event.facets)

    def _edge(self, event: Used | Generated | Invalidated) -> None:
        self._uid("activity", event.activity)
        _word("how", event.how)
        self._version(event.version)

    def _content(self, event: Content) -> None:
        self._version(event.version)
        if not _DIGEST.fullmatch(event.digest):
            raise _Invalid("digest: not blake3: and 64 hexadecimal digits")
        _range("size", event.size, 0, _LAST)
        _range("mode", event.mode, 0, 0o177777)
        _range("mtime", event.mtime, -_LAST, _LAST)
        _text("package", event.package, LONGEST)
        _text("source", event.source, LONGEST)

    def _looked(self, event: Looked) -> None:
        self._uid("activity", event.activity)
        _word("kind", event.kind)
        _text("answer", event.answer, LONGEST)
        known = _ANSWERS.get(event.kind)
        good = known is None or known.fullmatch(event.answer) is not None
        if not good or (event.kind == "link" and not is_file_path(event.answer)):
            raise _Invalid(f"answer: {event.answer[:80]!r} is no answer of kind {event.kind}")
        self._locator(event.locator)

    def _informed(self, event: Informed) -> None:
        self._uid("activity", event.activity)
        self._uid("by", event.by)
        _word("via", event.via)

    def _alias(self, event: Alias) -> None:
        self._normalised(event.a)
        self._normalised(event.b)

    def _gap(self, event: Gap) -> None:
        self._uid("activity", event.activity)
        _text("what", event.what, LONGEST_NAME)
        _text("why", event.why, LONGEST)
        if event.locator is not None:
            self._locator(event.locator)

    def _version(self, version: Version) -> None:
        self._normalised(version.locator)
        self._uid("maker", version.maker)
        _range("ordinal", version.ordinal, 0, _LAST)

    def _uid(self, field: str, uid: str) -> None:
        if uid not in self._uids:
            _word(field, uid)
            self._uids.add(uid)

    def _locator(self, locator: str) -> None:
        if locator not in self._locators:
            _check_locator(locator)
            self._locators.add(locator)

    def _normalised(self, locator: str) -> None:
        """Of a thing. What was looked for is recorded as it was asked: `/missing/../x`."""
        if locator not in self._things:
            self._locator(locator)
            if (found := _FILE.fullmatch(locator)) and not _is_normalised(found[1]):
                raise _Invalid(f"locator: the path of {locator[:80]!r} is not normalised")
            self._things.add(locator)


_CHECKS: dict[type, Callable[[_Checker, Any], None]] = {
    Started: _Checker._started,
    Ended: _Checker._ended,
    Used: _Checker._edge,
    Generated: _Checker._edge,
    Invalidated: _Checker._edge,
    Content: _Checker._content,
    Looked: _Checker._looked,
    Informed: _Checker._informed,
    Alias: _Checker._alias,
    Gap: _Checker._gap,
}


def check_facets(facets: dict[str, Any]) -> None:
    """Check the known facets against `Facets`, and all of them against the bounds."""
    _check_values(facets)
    try:
        found = msgspec.convert(facets, Facets)
    except msgspec.ValidationError as error:
        raise _Invalid(str(error).replace("`$", "`facets")) from None
    for name, stream in found.get("streams", {}).items():
        if stream["kind"] == "file" and "path" not in stream:
            raise _Invalid(f"facets.streams: {name[:40]!r} is a file without a path")
    for raw in found.get("variables_b64", {}).values():
        if b"\0" in b64decode(raw):
            raise _Invalid("facets.variables_b64: a value has a zero byte")
    if "begun" in found:
        for held in facets["begun"]["held"]:
            if len(held) not in (3, 6):
                raise _Invalid("facets.begun: a descriptor in held has 3 or 6 values")


def _check_values(facets: dict[str, Any]) -> None:
    """Only what JSON can hold, of bounded size; MessagePack has more types."""
    left = MOST_VALUES
    waiting: list[tuple[str, Any, int]] = [("", facets, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        if isinstance(value, dict):
            for key, one in value.items():
                if not isinstance(key, str):
                    raise _Invalid(f"facets.{name}: a key is not a text")
                _text(f"facets.{name}", key, LONGEST)
                waiting.append((name or ascii(key[:40])[1:-1], one, depth + 1))
            left -= len(value)
        elif isinstance(value, list):
            waiting.extend((name, one, depth + 1) for one in value)
            left -= len(value)
        elif isinstance(value, str):
            _text(f"facets.{name}", value, LONGEST)
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise _Invalid(f"facets.{name}: a number is not finite")
        elif isinstance(value, int):
            _range(f"facets.{name}", value, -_LAST, _LAST)
        elif value is not None:
            raise _Invalid(f"facets.{name}: a value is of a type that JSON does not have")
        if depth > DEEPEST or left < 0:
            raise _Invalid(f"facets.{name}: too large or nested too deeply")


def _check_locator(locator: str) -> None:
    _text("locator", locator, LONGEST_LOCATOR)
    if locator.startswith("file:"):
        found = _FILE.fullmatch(locator)
        good = found is not None and is_file_path(found[1])
    elif locator.startswith("stream:"):
        good = _STREAM.fullmatch(locator) is not None
    else:
        good = _SCHEME.match(locator) is not None
    if not good:
        raise _Invalid(f"locator: {locator[:80]!r} is malformed")


def _is_normalised(path: str) -> bool:
    """Whether an escaped path has no `.`, `..` or empty part; these are never written escaped."""
    return normpath(path) == path and not path.startswith("//")  # POSIX keeps two leading slashes


def _range(field: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise _Invalid(f"{field}: the number is out of range")


def _text(field: str, value: str | None, longest: int) -> None:
    if value is None:
        return
    if len(value) > longest:
        raise _Invalid(f"{field}: the text is longer than {longest} characters")
    if "\0" in value:
        raise _Invalid(f"{field}: the text has a zero byte")


def _word(field: str, value: str) -> None:
    if len(value) > LONGEST_NAME or not _WORD.fullmatch(value):
        raise _Invalid(f"{field}: {value[:80]!r} is not a word of printable ASCII characters")


def _path(field: str, value: str | None) -> None:
    _text(field, value, LONGEST_LOCATOR)
    if value is not None and not value.startswith("/"):
        raise _Invalid(f"{field}: {value[:80]!r} is not an absolute path")
