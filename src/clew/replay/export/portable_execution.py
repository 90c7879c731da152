"""An execution as it can leave the machine: what an image or a Dockerfile is made of.

A repeat here may ask its caller for secrets and hand on kept input; an image must hold neither.
What it cannot hold, and what will not be the same elsewhere, is told. Decided from the record
alone, so the same record gives the same image on any machine.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from clew.prov.file_classes import classify
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import Recorded
from clew.prov.queries.formats import STREAM
from clew.redaction import MASK
from clew.replay.repeat.repeat_plan import Plan, plan, secrets
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry, Names

LARGE = 1 << 30
"""Files without bytes that are larger than this together are worth a warning."""


@dataclass(frozen=True)
class Portable:
    """A command with all it needs, and without what must stay here."""

    id: str
    uid: str
    plan: Plan
    """Without secret variables; in its words a mask stands where a secret stood."""
    user: tuple[int, int]
    redacted: tuple[str, ...]
    """Variables to be set where it runs."""
    written: frozenset[bytes]
    """Paths it made, changed or removed, and the folders where it did."""
    ended: int
    warnings: tuple[str, ...]

    def owned(self, path: bytes, entry: Entry) -> tuple[int, int, int]:
        """Whose a path is, and its mode: (uid, gid, mode).

        Owners are not recorded. The user has what it wrote, where it wrote, its own files, and
        what others may not read; root has the rest. The user could do to each what it did, so
        its mode must still allow that. No program of an image gains privileges: under the
        witness none did.
        """
        mode = stat.S_IMODE(entry.mode) & ~(0 if entry.kind == "folder" else 0o6000)
        uid, gid = self.user
        if uid == 0 or entry.kind == "link":
            return (uid, gid, mode) if uid == 0 or self.own(path) else (0, 0, mode)
        needed = 0o005 if entry.kind == "folder" else 0o004
        if not (path in self.written or self.own(path) or mode & needed != needed):
            return 0, 0, mode
        if entry.kind == "folder":
            return uid, gid, mode | 0o700
        mode |= 0o600 if path in self.written else 0o400
        return uid, gid, mode | (0o100 if mode & 0o011 else 0)

    def own(self, path: bytes) -> bool:
        """Whether it is the user's own: neither the system's nor a package's."""
        return classify(path + b"/", self.plan.packages.get(path)) not in ("system", "package")


def portable(record: Recorded, names: Names) -> Portable:
    """What of `record` can be taken elsewhere."""
    itself = record.itself
    hidden = tuple(n for n in record.facets.get("redacted", ()) if n in itself.environment)
    # asked for without its words, in which a secret is a warning here and no error, and without
    # its streams, which are whatever they are where it will run
    bare = replace(
        record,
        activities={**record.activities, itself.key: itself._replace(command=[])},
        facets={n: v for n, v in record.facets.items() if n not in ("streams", "argument_secrets")},
    )
    masked = SecretValues(given=dict.fromkeys(secrets(bare), MASK))
    found = plan(bare, names=names, values=masked, network=True)
    variables = {n: v for n, v in found.environ.items() if n not in hidden}
    found = replace(
        found,
        command=tuple(map(text, itself.command)),
        environ={text(n): text(v) for n, v in variables.items()},
    )
    user = record.facets.get("user", {})
    return Portable(
        id=record.execution.id,
        uid=record.execution.uid,
        plan=found,
        user=(int(user.get("uid", 0)), int(user.get("gid", 0))),
        redacted=hidden,
        written=_written(record, found.scenery.entries),
        ended=itself.ended or itself.started,
        warnings=(*found.warnings, *_warnings(record, found, variables, hidden)),
    )


def text(word: str) -> str:
    """As JSON and a Dockerfile can hold it."""
    return word.encode(errors="surrogateescape").decode(errors="replace")


def _written(record: Recorded, entries: Mapping[bytes, Entry]) -> frozenset[bytes]:
    written: set[bytes] = set()
    for edge in (*record.generated, *record.invalidated):
        path = path_of(record.versions[edge.version].locator)
        if path is None:
            continue
        written.add(path)
        folder = os.path.dirname(path)
        while folder not in entries and len(folder) > 1:
            folder = os.path.dirname(folder)  # the run made it, and so wrote where that lies
        written.add(folder)
    return frozenset(written)


def _input(record: Recorded) -> str | None:
    """By which name its standard input is kept, if there was any."""
    stdin = record.facets.get("streams", {}).get("stdin", {})
    if stdin.get("kind") == "file":
        return f"{stdin['path']}@input"
    line = record.lines.get(f"{STREAM}{record.execution.uid}/stdin", ())
    return "stdin" if any(version.size for version in line) else None


def _warnings(
    record: Recorded, found: Plan, variables: Mapping[str, str], hidden: Iterable[str]
) -> Iterable[str]:
    if hidden:
        yield f"{', '.join(hidden)} had secret values, which are not recorded: set them to run it"
    for number in record.facets.get("argument_secrets", ()):
        yield f"word {number} of the command held a secret, and is {MASK} now: give it anew"
    exact = [n for n, v in variables.items() if text(n) != n or text(v) != v]
    if exact:
        yield f"the values of {', '.join(map(text, exact))} are not UTF-8, and not quite the same"
    source = _input(record)
    if source:
        yield f"it read its standard input: give it again (clew cat {record.execution.id}:{source})"
    if record.facets.get("pinned"):
        yield "its clock or randomness was pinned: here they run free"
    empty = sum(e.size for e in found.scenery.entries.values() if e.kind == "stub")
    if empty > LARGE:
        yield (
            f"files that it only looked at stand for themselves as zeros: {empty / 1e9:.1f} GB"
            " when unpacked"
        )
