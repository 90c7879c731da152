"""Check the values of a record from another party before any of it is stored.

`check_events` rejects a number or a text out of its range, a malformed locator or path, and a known
facet of another type (`facets`). `docs/formats/events.md` lists the same rules for people who write
events.
"""

import math
import re
from collections.abc import Callable, Iterable
from posixpath import normpath
from typing import Any

from clew.documents.ids import Locator, Uid
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
from clew.prov.facets import (
    MAX_INTEGER,
    MAX_LOCATOR,
    MAX_NAME,
    MAX_TEXT,
    InvalidValue,
    check_facets,
    check_range,
    check_text,
)
from clew.prov.fold import NEVER
from clew.prov.locators import is_file_path

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.ASCII)
_FILE = re.compile(r"file://[A-Za-z0-9._-]{0,64}(/.*)", re.ASCII | re.DOTALL)
_STREAM = re.compile(r"stream://[0-9a-f]{32}/(?:stdin|stdout|stderr)")
_DIGEST = re.compile(r"blake3:[0-9a-f]{64}")
_IMAGE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OBJECT_DIGEST = re.compile(r"etag:[!-~]{1,200}")
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


def check_events(uid: Uid, events: Iterable[AnyEvent]) -> None:
    """Raise Rejected unless every event of the execution `uid` has valid values."""
    checker = _Checker()
    for event in events:
        try:
            checker.check(event)
        except InvalidValue as error:
            kind = type(event).__name__.lower()
            raise Rejected(
                f"the record of {uid[:8]!r} is malformed: {error} (event {event.n}, {kind})",
                hint="nothing of this record was imported; see docs/formats/events.md",
            ) from None


class _Checker:
    """Checks the events of one record. Locators and uids recur: each is checked once."""

    def __init__(self) -> None:
        self._locators: set[Locator] = set()
        self._normalised_locators: set[Locator] = set()
        self._uids: set[Uid] = set()

    def check(self, event: AnyEvent) -> None:
        check_range("n", event.n, 0, MAX_INTEGER)
        check_range("at", event.at, 0, NEVER - 1)
        self._uid("execution", event.execution)
        check = _CHECKS.get(type(event))
        if check is not None:  # else an event of a newer Clew, which is not stored
            check(self, event)

    def _started(self, event: Started) -> None:
        self._uid("activity", event.activity)
        _word("kind", event.kind)
        if event.parent is not None:
            self._uid("parent", event.parent)
        for name in ("number", "pid"):
            check_range(name, getattr(event, name), 0, MAX_INTEGER)
        for name in ("agent", "name", "image", "node"):
            check_text(name, getattr(event, name), MAX_NAME)
        for name in ("exe", "cwd"):
            _path(name, getattr(event, name))
        for word in event.command:
            check_text("command", word, MAX_TEXT)
        for name, value in event.environment.items():
            check_text("environment", name, MAX_TEXT)
            check_text("environment", value, MAX_TEXT)
            if "=" in name:
                raise InvalidValue("environment: the name of a variable has no =")
        check_facets(event.facets)

    def _ended(self, event: Ended) -> None:
        self._uid("activity", event.activity)
        check_range("status", event.status, -(2**31), 2**31 - 1)
        check_range("signal", event.signal, 0, 2**31 - 1)
        for name, value in event.usage.items():
            check_text("usage", name, MAX_NAME)
            if not (math.isfinite(value) and 0 <= value <= MAX_INTEGER):
                raise InvalidValue(f"usage: {name[:40]!r} is out of range")
        check_facets(event.facets)

    def _edge(self, event: Used | Generated | Invalidated) -> None:
        self._uid("activity", event.activity)
        _word("how", event.how)
        self._version(event.version)

    def _content(self, event: Content) -> None:
        self._version(event.version)
        if not _digest_form(event.version.locator, event.digest).fullmatch(event.digest):
            raise InvalidValue("digest: not blake3: and 64 hexadecimal digits")
        check_range("size", event.size, 0, MAX_INTEGER)
        check_range("mode", event.mode, 0, 0o177777)
        check_range("mtime", event.mtime, -MAX_INTEGER, MAX_INTEGER)
        check_text("package", event.package, MAX_TEXT)
        check_text("source", event.source, MAX_TEXT)

    def _looked(self, event: Looked) -> None:
        self._uid("activity", event.activity)
        self._look(event.kind, event.locator, event.answer)
        for kind, locator, answer in event.also:
            if kind == "listing":
                raise InvalidValue("also: a listing always comes first")
            self._look(kind, locator, answer)

    def _look(self, kind: str, locator: Locator, answer: str) -> None:
        _word("kind", kind)
        check_text("answer", answer, MAX_TEXT)
        known = _ANSWERS.get(kind)
        good = known is None or known.fullmatch(answer) is not None
        if not good or (kind == "link" and not is_file_path(answer)):
            raise InvalidValue(f"answer: {answer[:80]!r} is not an answer of kind {kind}")
        self._locator(locator)

    def _informed(self, event: Informed) -> None:
        self._uid("activity", event.activity)
        self._uid("by", event.by)
        _word("via", event.via)

    def _alias(self, event: Alias) -> None:
        self._normalised(event.a)
        self._normalised(event.b)

    def _gap(self, event: Gap) -> None:
        self._uid("activity", event.activity)
        check_text("what", event.what, MAX_NAME)
        check_text("why", event.why, MAX_TEXT)
        if event.locator is not None:
            self._locator(event.locator)

    def _version(self, version: Version) -> None:
        self._normalised(version.locator)
        self._uid("maker", version.maker)
        check_range("ordinal", version.ordinal, 0, MAX_INTEGER)

    def _uid(self, field: str, uid: Uid) -> None:
        if uid not in self._uids:
            _word(field, uid)
            self._uids.add(uid)

    def _locator(self, locator: Locator) -> None:
        if locator not in self._locators:
            _check_locator(locator)
            self._locators.add(locator)

    def _normalised(self, locator: Locator) -> None:
        """Check the locator of a version. A look keeps the path as given, such as
        `/missing/../x`."""
        if locator not in self._normalised_locators:
            self._locator(locator)
            if (match := _FILE.fullmatch(locator)) and not _is_normalised(match[1]):
                raise InvalidValue(f"locator: the path of {locator[:80]!r} is not normalised")
            self._normalised_locators.add(locator)


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


def _digest_form(locator: Locator, digest: str) -> re.Pattern[str]:
    """An image has the digest of its manifest, and an object of S3 may have its ETag alone."""
    if locator == f"image://{digest}":
        return _IMAGE_DIGEST
    by_etag = locator.startswith("s3://") and digest.startswith("etag:")
    return _OBJECT_DIGEST if by_etag else _DIGEST


def _check_locator(locator: Locator) -> None:
    check_text("locator", locator, MAX_LOCATOR)
    if locator.startswith("file:"):
        match = _FILE.fullmatch(locator)
        good = match is not None and is_file_path(match[1])
    elif locator.startswith("stream:"):
        good = _STREAM.fullmatch(locator) is not None
    else:
        good = _SCHEME.match(locator) is not None
    if not good:
        raise InvalidValue(f"locator: {locator[:80]!r} is malformed")


def _is_normalised(path: str) -> bool:
    """Whether an escaped path has no `.`, `..` or empty part; these are never written escaped."""
    return normpath(path) == path and not path.startswith("//")  # POSIX keeps two leading slashes


def _word(field: str, value: str) -> None:
    if len(value) > MAX_NAME or not _WORD.fullmatch(value):
        raise InvalidValue(f"{field}: {value[:80]!r} is not a word of printable ASCII characters")


def _path(field: str, value: str | None) -> None:
    check_text(field, value, MAX_LOCATOR)
    if value is not None and not value.startswith("/"):
        raise InvalidValue(f"{field}: {value[:80]!r} is not an absolute path")
