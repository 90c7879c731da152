"""Builds the events of an execution for tests of the graph.

It numbers events and versions as a witness does: a path's versions
count up, a read of an unwritten path adds a found version, a write a new one.
"""

from __future__ import annotations

from typing import Any

from blake3 import blake3

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
    Observation,
    Started,
    Used,
    Version,
)
from clew.prov.locators import file_locator

MACHINE = "m1"


def digest(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return f"blake3:{blake3(data).hexdigest()}"


def locator(path: str | bytes) -> str:
    if isinstance(path, str) and "://" in path:
        return path
    return file_locator(MACHINE, path.encode() if isinstance(path, str) else path)


class ExecutionBuilder:
    def __init__(
        self, uid: str, *, at: int = 1_000, command: tuple[str, ...] = ("sh",), **facts: Any
    ):
        self.uid = uid * (32 // len(uid)) if len(uid) < 32 else uid
        self.events: list[AnyEvent] = []
        self._at = at
        self._processes = 0
        self._last: dict[str, Version] = {}
        self._count: dict[str, int] = {}
        self._add(Started, activity=self.uid, kind="execution", command=command, cwd="/w", **facts)

    def _add(self, event: type[Any], **fields: Any) -> None:
        self._at += 1
        self.events.append(event(execution=self.uid, n=len(self.events) + 1, at=self._at, **fields))

    def same_time(self, events: int = 1) -> ExecutionBuilder:
        """Give the next event the time of the last one, `events` back."""
        self._at -= events
        return self

    def process(
        self, *command: str, parent: str | None = None, forked: bool = False, **facts: Any
    ) -> str:
        self._processes += 1
        uid = f"{self.uid[:8]}-{self._processes}-0-0"
        self._add(
            Started, activity=uid, kind="process", parent=parent or self.uid,
            number=self._processes, pid=100 + self._processes, command=command,
            exe=None if forked else "/bin/x", cwd="/w", **facts,
        )  # fmt: skip
        return uid

    def _next(self, path: str | bytes, maker: str) -> Version:
        where = locator(path)
        self._count[where] = self._count.get(where, 0) + 1
        self._last[where] = Version(where, maker, self._count[where])
        return self._last[where]

    def content(self, version: Version, text: str | bytes, **facts: Any) -> None:
        self._add(
            Content, version=version, digest=digest(text), size=len(text), mode=0o100644,
            mtime=self._at, **facts,
        )  # fmt: skip

    def read(
        self,
        process: str,
        path: str | bytes,
        text: str | None = None,
        *,
        how: str = "open",
        **facts: Any,
    ) -> Version:
        """Read what is there; with `text`, find a new version that holds it."""
        version = self._last.get(locator(path))
        if version is None or text is not None:
            version = self._next(path, self.uid)
        self._add(Used, activity=process, version=version, how=how)
        if text is not None:
            self.content(version, text, **facts)
        return version

    def write(
        self, process: str, path: str | bytes, text: str | bytes | None = None, *,
        how: str = "write", finished: bool = False,
    ) -> Version:  # fmt: skip
        version = self._next(path, process)
        self._add(Generated, activity=process, version=version, how=how, finished=finished)
        if text is not None:
            self.content(version, text)
        return version

    def delete(self, process: str, path: str, *, how: str = "delete") -> None:
        self._add(Invalidated, activity=process, version=self._last[locator(path)], how=how)

    def rename(self, process: str, old: str, new: str, text: str) -> Version:
        """One call, so one time for all it does."""
        at = self._at
        self.read(process, old, how="rename")
        self._at = at
        self.delete(process, old, how="rename")
        self._at = at
        return self.write(process, new, text, how="rename")

    def look(
        self, process: str, path: str, kind: str = "absent", answer: str = "", *also: Observation
    ) -> None:
        self._add(
            Looked, activity=process, kind=kind, locator=locator(path), answer=answer, also=also
        )

    def inform(self, receiver: str, sender: str, via: str = "pipe") -> None:
        self._add(Informed, activity=receiver, by=sender, via=via)

    def alias(self, a: str, b: str) -> None:
        self._add(Alias, a=locator(a), b=locator(b))

    def gap(self, activity: str, what: str, why: str, path: str | None = None) -> None:
        where = None if path is None else locator(path)
        self._add(Gap, activity=activity, what=what, why=why, locator=where)

    def end(
        self, status: int | None = 0, *, activity: str | None = None, **facts: Any
    ) -> ExecutionBuilder:
        signal = facts.pop("signal", None)
        self._add(Ended, activity=activity or self.uid, status=status, signal=signal, facets=facts)
        return self
