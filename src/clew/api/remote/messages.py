"""The messages of the private routes of the command line: `clew.server.v1.cli` answers them.

Client and server use the same types, so a malformed answer is an error with a hint. Paths that are
not UTF-8 are texts with surrogate escapes, as Python has them; JSON escapes these.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.api.remote.caller_paths import ClientPaths
from clew.documents.files.checkouts import MissingFile
from clew.documents.files.recreations import RecreationPlan
from clew.documents.ids import Digest, ExecutionId, Locator, Uid

if TYPE_CHECKING:
    from clew.prov.queries.targets import Target
    from clew.replay.checkout.working_tree import Checkout, TrackedFile
    from clew.replay.sandbox.initial_files import Entry

Secrets = dict[str, str]
"""Secrets from the client, which no record contains: by name of variable or path of file."""


def encode_message(message: object) -> bytes:
    return json.dumps(msgspec.to_builtins(message, str_keys=True)).encode()


class ContentRequest(msgspec.Struct):
    """Which version to send."""

    target: str
    asker: ClientPaths


class StoredVersion(msgspec.Struct):
    """A version whose content is stored, with what the client needs to write it."""

    kind: str
    label: str
    locator: Locator | None
    digest: Digest
    size: int
    mode: int | None
    mtime: int | None
    stored: bool
    execution: int | None

    def as_target(self) -> Target:
        from clew.prov.queries.targets import Target

        return Target(**msgspec.structs.asdict(self), keys=())


class Problem(msgspec.Struct):
    code: str
    message: str
    hint: str


class Recreatable(msgspec.Struct):
    """How a version can be recreated; if it cannot, why."""

    sought: list[tuple[Digest, str, int]]
    """(digest, path, size) of files of the client that would help, if they are unchanged."""
    target: StoredVersion | None = None
    plan: RecreationPlan | None = None
    error: Problem | None = None


class CheckoutFile(msgspec.Struct):
    """A file of a checkout: its path there (`place`), and its path in the execution."""

    place: str
    path: str
    digest: Digest
    mode: int
    size: int
    mtime: int
    link: bool = False

    def read(self) -> TrackedFile:
        from clew.replay.checkout.working_tree import TrackedFile

        return TrackedFile.read(msgspec.structs.asdict(self))

    @classmethod
    def of(cls, file: TrackedFile) -> CheckoutFile:
        return cls(**file.as_json())


class CheckoutListing(msgspec.Struct):
    """The files of a checkout, for the client to write."""

    execution: Uid
    id: ExecutionId
    cwd: str
    files: list[CheckoutFile]
    missing: tuple[MissingFile, ...]


class SentCheckout(msgspec.Struct):
    """A checkout of the client, whose files the server has."""

    execution: Uid
    id: ExecutionId
    cwd: str
    files: list[CheckoutFile]
    """The files as they were written to the checkout."""
    now: list[CheckoutFile]

    def read(self) -> tuple[Checkout, dict[bytes, TrackedFile]]:
        from clew.replay.checkout.working_tree import Checkout

        found = Checkout(
            directory=Path(),
            project=Uid(""),
            root="",
            execution=self.execution,
            id=self.id,
            cwd=self.cwd,
            files=tuple(one.read() for one in self.files),
        )
        return found, {kept.place: kept for kept in (one.read() for one in self.now)}


class SentFile(msgspec.Struct):
    """A file of the client whose content is already in the store."""

    digest: Digest
    size: int
    mode: int
    mtime: int

    @classmethod
    def of(cls, entry: Entry) -> SentFile:
        assert entry.digest is not None
        assert entry.size is not None
        assert entry.mtime is not None
        return cls(entry.digest, entry.size, entry.mode, entry.mtime)


class RepeatCommand(msgspec.Struct, tag="repeat"):
    """`clew repeat`."""

    id: str
    parameters: dict[int, str] = {}
    files: dict[str, SentFile] = {}
    """The files that parameters refer to, by the parameter's text."""
    network: bool = False
    gpu: bool = False
    incremental: bool = False
    quiet: bool = True
    secrets: Secrets = {}
    request: Uid | None = None
    """The id of a queued repeat. The uids of its executions follow from it, so that a repeat that
    was interrupted continues with what it has not recorded."""


class ConfirmCommand(msgspec.Struct, tag="confirm"):
    """`clew diff --confirm`."""

    a: str
    b: str
    secrets: Secrets = {}


class CommitCommand(msgspec.Struct, tag="commit"):
    """`clew commit` of a client's checkout."""

    checkout: SentCheckout
    message: str | None = None
    network: bool = False
    gpu: bool = False
    quiet: bool = True
    secrets: Secrets = {}


class RecreateCommand(msgspec.Struct, tag="recreate"):
    """`clew recreate`, except for writing the file, which the client does."""

    target: str
    asker: ClientPaths
    brought: dict[str, str] = {}
    """The files that the client sent: their paths by digest."""
    network: bool = False
    gpu: bool = False
    secrets: Secrets = {}


RerunCommand = RepeatCommand | ConfirmCommand | CommitCommand | RecreateCommand
