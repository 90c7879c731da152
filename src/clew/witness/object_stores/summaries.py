"""How often, how much and by whom a version was accessed, by the minute.

A gigabyte is read in a hundred requests for ranges. They are one use of one version; this says in
one event how many requests there were, of which bytes. A minute's summary depends on the lines of
that minute alone, so a line that is read again after a crash gives the same event.
"""

import re
from collections.abc import Iterator

import msgspec

from clew.documents.ids import Locator, Uid
from clew.witness.object_stores.access_log import LogLine

MINUTE = 60 * 10**9
MAX_RANGES = 64
MAX_OPEN = 10_000
"""Summaries of one minute; accesses beyond it are counted together."""
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/.*")


class AccessKey(msgspec.Struct, frozen=True, array_like=True):
    """What one summary counts."""

    minute: int
    activity: Uid
    locator: Locator
    operation: str
    caller: str
    source: str


class AccessSummary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The answer of a look of kind `accessed`, as JSON."""

    operation: str
    caller: str = ""
    version: str = ""
    sha256: str = ""  # of what was written, if the client signed it
    requests: int = 0
    failed: int = 0
    received: int = 0  # bytes that the Pod sent
    sent: int = 0  # bytes that it got
    ranges: list[tuple[int, int]] = []  # first byte and first byte after; joined where they touch
    more_ranges: bool = False

    def add_range(self, first: int, end: int) -> None:
        joined: list[tuple[int, int]] = []
        for other in sorted([*self.ranges, (first, end)]):
            if joined and other[0] <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], other[1]))
            else:
                joined.append((other[0], other[1]))
        if len(joined) > MAX_RANGES:
            self.more_ranges = True
        else:
            self.ranges = joined


class Summaries(msgspec.Struct):
    """The minutes that are not over yet."""

    waiting: dict[str, tuple[AccessKey, AccessSummary]] = {}

    def find(self, key: AccessKey) -> AccessSummary:
        name = _name(key)
        if name not in self.waiting and len(self.waiting) >= MAX_OPEN:
            key = msgspec.structs.replace(key, locator=Locator("s3://"), caller="", source="")
            name = _name(key)
        if name not in self.waiting:
            summary = AccessSummary(operation=key.operation, caller=key.caller, version=key.source)
            self.waiting[name] = key, summary
        return self.waiting[name][1]

    def take_until(self, at: int) -> Iterator[tuple[AccessKey, AccessSummary]]:
        """The summaries of minutes that were over at this time."""
        done = [name for name, (key, _) in self.waiting.items() if key.minute < at // MINUTE]
        for name in done:
            yield self.waiting.pop(name)


def _name(key: AccessKey) -> str:
    return "\0".join(map(str, msgspec.structs.astuple(key)))


def find_range(line: LogLine) -> tuple[int, int] | None:
    """The bytes of an object that an answer had: the first one and the first one after."""
    match = _CONTENT_RANGE.fullmatch(line.content_range or "")
    return (int(match[1]), int(match[2]) + 1) if match else None
