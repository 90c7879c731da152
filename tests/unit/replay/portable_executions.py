"""Executions to be taken elsewhere, as plain values."""

import os
from collections.abc import Mapping
from typing import Any

from clew.replay.export.portability import PortableExecution
from clew.replay.repeat.repeat_plan import RepeatPlan
from clew.replay.sandbox.initial_files import Entry, InitialFiles

FILE = Entry("file", mode=0o644, size=3, digest="blake3:" + "0" * 64)
PROGRAM = Entry("file", mode=0o755, size=3, digest="blake3:" + "1" * 64)
DIRECTORY = Entry("directory")


def link(target: str) -> Entry:
    return Entry("link", mode=0o777, target=os.fsencode(target))


def portable(
    entries: Mapping[str, Entry],
    *,
    packages: Mapping[str, str] | None = None,
    user: tuple[int, int] = (1000, 100),
    written: tuple[str, ...] = (),
    environ: Mapping[str, str] | None = None,
    facets: Mapping[str, Any] | None = None,
) -> PortableExecution:
    scene = InitialFiles({}).with_changes(
        {os.fsencode(path): entry for path, entry in entries.items()}
    )
    return PortableExecution(
        id="e1",
        uid="0123456789abcdef",
        plan=RepeatPlan(
            command=("program", "a b"),
            environ={"LANG": "C", "PRICE": "5$"} | dict(environ or {}),
            secrets={},
            cwd="/home/me/project",
            machine="m",
            initial_files=scene,
            facets={"os": {"id": "debian", "version_id": "12"}, **(facets or {})},
            packages={os.fsencode(p): purl for p, purl in (packages or {}).items()},
            stdin=None,
            appended={},
            devices=(),
            warnings=(),
        ),
        user=user,
        redacted=(),
        written=frozenset(map(os.fsencode, written)),
        ended=10**18,
        warnings=(),
    )
