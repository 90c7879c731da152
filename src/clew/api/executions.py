"""Executions, their processes and files as the interface shows them; see `clew.api.results`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from clew.documents.executions import Execution as ExecutionDocument
from clew.errors import ClewError

Document = Mapping[str, Any]


def moment(text: str | None) -> datetime | None:
    """A time of a JSON document, with its zone (always UTC)."""
    return datetime.fromisoformat(text) if text else None


@dataclass(frozen=True, kw_only=True)
class Record:
    """A value that keeps the document it was read from."""

    document: Document = field(repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The document as `--json` prints it."""
        return dict(self.document)


@dataclass(frozen=True, kw_only=True)
class Process(Record):
    """One program that ran within an execution."""

    id: str
    parent: str | None
    pid: int | None
    command: tuple[str, ...]
    exe: str | None
    cwd: str | None
    started: datetime | None
    ended: datetime | None
    status: int | None

    @classmethod
    def read(cls, document: Document) -> Process:
        return cls(
            document=document,
            id=document["id"],
            parent=document["parent"],
            pid=document["pid"],
            command=tuple(document["command"]),
            exe=document["exe"],
            cwd=document["cwd"],
            started=moment(document["started"]),
            ended=moment(document["ended"]),
            status=document["status"],
        )


@dataclass(frozen=True, kw_only=True)
class File(Record):
    """What an execution did to one path."""

    path: str
    role: str
    """input, output, or transient (written, and gone at the end)."""
    category: str
    """data, configuration, source, package or system; `class` in JSON."""
    read: bool
    written: bool
    digest: str | None
    size: int | None
    package: Document | None

    @classmethod
    def of(cls, document: Document) -> File:
        return cls(
            document=document,
            path=document["path"],
            role=document["role"],
            category=document["class"],
            read=document["read"],
            written=document["written"],
            digest=document["digest"],
            size=document["size"],
            package=document["package"],
        )


@dataclass(frozen=True, repr=False)
class Execution:
    """One recorded command. Its processes and files are asked for when they are first looked at."""

    document: ExecutionDocument
    ask: Callable[[str], Document] = field(compare=False)
    """The full account of an execution, by uid."""

    def __hash__(self) -> int:
        return hash(self.uid)

    def __repr__(self) -> str:
        return f"Execution({self.id}: {' '.join(self.command)})"

    @property
    def id(self) -> str:
        """`e2`; empty while the record could not be added to the graph."""
        return self.document.id or ""

    @property
    def uid(self) -> str:
        return self.document.uid

    @property
    def name(self) -> str | None:
        return self.document.name

    @property
    def command(self) -> tuple[str, ...]:
        return tuple(self.document.command)

    @property
    def cwd(self) -> str | None:
        return self.document.cwd

    @property
    def agent(self) -> str | None:
        return self.document.agent

    @property
    def started(self) -> datetime | None:
        return moment(self.document.started)

    @property
    def ended(self) -> datetime | None:
        return moment(self.document.ended)

    @property
    def seconds(self) -> float | None:
        return self.document.seconds

    @property
    def state(self) -> str:
        """running, done, failed or broken."""
        return self.document.state

    @property
    def status(self) -> int | None:
        return self.document.status

    @property
    def signal(self) -> int | None:
        return self.document.signal

    @property
    def bytes(self) -> int | None:
        return self.document.bytes

    @property
    def new_bytes(self) -> int | None:
        return self.document.new_bytes

    @property
    def made_elsewhere(self) -> bool:
        """It was pulled or sent here, or repeats one that was: its record is untrusted."""
        return self.document.made_elsewhere

    @property
    def signed_by(self) -> str | None:
        """Who signed the record that was pulled: a known signer's name, or `unknown key` and
        which."""
        return self.document.signed_by

    @property
    def task(self) -> str | None:
        """The pipeline task that it ran: `r1/train`."""
        return self.document.task

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(self.document.tags)

    def as_json(self) -> dict[str, Any]:
        """The document as `--json` prints it."""
        document: dict[str, Any] = msgspec.to_builtins(self.document)
        return document

    @cached_property
    def details(self) -> Document:
        """The document of `clew show --detail --json`."""
        return self.ask(self.uid)

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        return tuple(map(Process.read, self.details["tree"]))

    @cached_property
    def files(self) -> tuple[File, ...]:
        """Every file it met, in the order of their paths."""
        return tuple(map(File.of, self.details["files"]))

    @property
    def inputs(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.role == "input")

    @property
    def outputs(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.role == "output")


@dataclass(frozen=True, kw_only=True)
class ExecutionList:
    """The result of `Project.select`."""

    executions: tuple[Execution, ...]
    """Newest first."""
    more: int
    """How many more match than were asked for."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of `Project.run`."""

    execution: Execution
    status: int
    """The exit status of the command, as a shell would report it."""
    joined: str | None
    """The id of the outer execution, if this ran inside one and became part of it."""
    warning: ClewError | None
    """Why the record is incomplete although the command ran to its end."""
    server: str | None = None
    """Where it is sent, if anywhere."""
    sent: str | None = None
    """The id it has there."""
    waiting: str | None = None
    """Why it is not there yet; it goes with the next."""
