"""Select what of an execution an image or a Dockerfile can hold.

A local repeat may ask its caller for secrets and pass on recorded standard input; an image must
hold neither. The warnings name what is left out and what will differ on another machine. Decided
from the record alone, so the same record gives the same image everywhere.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from clew.documents.ids import ExecutionId, Uid
from clew.prov.file_classes import classify
from clew.prov.locators import path_of, stream_locator
from clew.prov.queries.execution_record import ExecutionRecord
from clew.redaction import MASK
from clew.replay.repeat.repeat_plan import RepeatPlan, list_secrets, make_plan
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry, ReadListing

LARGE_STUBS = 1 << 30
"""Bytes. Warn if stubs (files whose content is not recorded) take more than this."""


@dataclass(frozen=True)
class PortableExecution:
    """A command with everything it needs, and without secrets."""

    id: ExecutionId
    uid: Uid
    plan: RepeatPlan
    """Without secret variables; secrets in its arguments are masked."""
    user: tuple[int, int]
    redacted: tuple[str, ...]
    """Variables that must be set where it runs."""
    written: frozenset[bytes]
    """Paths that it wrote or removed, and the directories that contain them."""
    ended: int
    warnings: tuple[str, ...]

    def ownership(self, path: bytes, entry: Entry) -> tuple[int, int, int]:
        """The owner and mode of a path: (uid, gid, mode).

        Owners are not recorded. The user gets the files it wrote, the directories it wrote in, its
        own files, and files that others may not read; root gets the rest. The mode must still allow
        what the execution did. Set-uid bits are dropped: a traced program never gained privileges
        either.
        """
        mode = stat.S_IMODE(entry.mode) & ~(0 if entry.kind == "directory" else 0o6000)
        uid, gid = self.user
        if uid == 0 or entry.kind == "link":
            return (uid, gid, mode) if uid == 0 or self.is_user_file(path) else (0, 0, mode)
        needed = 0o005 if entry.kind == "directory" else 0o004
        if not (path in self.written or self.is_user_file(path) or mode & needed != needed):
            return 0, 0, mode
        if entry.kind == "directory":
            return uid, gid, mode | 0o700
        mode |= 0o600 if path in self.written else 0o400
        return uid, gid, mode | (0o100 if mode & 0o011 else 0)

    def is_user_file(self, path: bytes) -> bool:
        """Whether the path belongs to neither the system nor a package."""
        return classify(path + b"/", self.plan.packages.get(path)) not in ("system", "package")


def make_portable(record: ExecutionRecord, read_listing: ReadListing) -> PortableExecution:
    """Select what of `record` can run on another machine."""
    itself = record.itself
    hidden = tuple(n for n in record.facets.get("redacted", ()) if n in itself.environment)
    # Without the command, in which a secret is only a warning here, and without the streams, which
    # depend on where it will run.
    bare = replace(
        record,
        activities={**record.activities, itself.key: itself._replace(command=[])},
        facets={n: v for n, v in record.facets.items() if n not in ("streams", "argument_secrets")},
    )
    masked = SecretValues(given=dict.fromkeys(list_secrets(bare), MASK))
    found = make_plan(bare, read_listing=read_listing, values=masked, network=None)
    variables = {n: v for n, v in found.environ.items() if n not in hidden}
    found = replace(
        found,
        command=tuple(map(to_utf8, itself.command)),
        environ={to_utf8(n): to_utf8(v) for n, v in variables.items()},
    )
    user = record.facets.get("user", {})
    return PortableExecution(
        id=record.execution.id,
        uid=record.execution.uid,
        plan=found,
        user=(int(user.get("uid", 0)), int(user.get("gid", 0))),
        redacted=hidden,
        written=_written_paths(record, found.initial_files.entries),
        ended=itself.ended or itself.started,
        warnings=(*found.warnings, *_warnings(record, found, variables, hidden)),
    )


def to_utf8(word: str) -> str:
    """Replace bytes that JSON and a Dockerfile cannot hold."""
    return word.encode(errors="surrogateescape").decode(errors="replace")


def _written_paths(record: ExecutionRecord, entries: Mapping[bytes, Entry]) -> frozenset[bytes]:
    written: set[bytes] = set()
    for edge in (*record.generated, *record.invalidated):
        path = path_of(record.versions[edge.version].locator)
        if path is None:
            continue
        written.add(path)
        directory = os.path.dirname(path)
        while directory not in entries and len(directory) > 1:
            directory = os.path.dirname(directory)  # the run made it, and so wrote where that lies
        written.add(directory)
    return frozenset(written)


def _stdin_name(record: ExecutionRecord) -> str | None:
    """The name under which the standard input is stored; None if there was none."""
    stdin = record.facets.get("streams", {}).get("stdin", {})
    if stdin.get("kind") == "file":
        return f"{stdin['path']}@input"
    line = record.lines.get(stream_locator(record.execution.uid, "stdin"), ())
    return "stdin" if any(version.size for version in line) else None


def _warnings(
    record: ExecutionRecord, found: RepeatPlan, variables: Mapping[str, str], hidden: Iterable[str]
) -> Iterable[str]:
    if hidden:
        yield f"set {', '.join(hidden)} to run it: their values were secret and are not recorded"
    for number in record.facets.get("argument_secrets", ()):
        yield f"replace argument {number} to run it: it held a secret and is {MASK} now"
    exact = [n for n, v in variables.items() if to_utf8(n) != n or to_utf8(v) != v]
    if exact:
        names = ", ".join(map(to_utf8, exact))
        yield f"the values of {names} are not UTF-8: invalid bytes were replaced"
    source = _stdin_name(record)
    if source:
        yield f"it read standard input; to get it: clew cat {record.execution.id}:{source}"
    if record.facets.get("pinned"):
        yield "its clock or randomness was pinned; an image does not pin them"
    empty = sum(e.size for e in found.initial_files.entries.values() if e.kind == "stub")
    if empty > LARGE_STUBS:
        yield (
            "files whose content is not recorded are filled with zeros:"
            f" {empty / 1e9:.1f} GB when unpacked"
        )
