"""Whether a program is about to be started as it was started before.

The same words are how the earlier start was found; its variables, its descriptors and what else
it inherits must be the same as well. The first thing that is not is the answer, in words. What
the program then sees of files is another question (`clew.replay.reuse.input_check`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.prov.queries.execution_record import Activity, ExecutionRecord
from clew.prov.queries.formats import STREAM
from clew.redaction import MASK
from clew.replay.reuse.subtree import Subtree

_MAX_IDLE_SECONDS = 0.03
"""Seconds: a program that waited longer than that may have waited for others."""


@dataclass(frozen=True)
class ProgramStart:
    """A program that is about to be started."""

    program: str
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    held: list[list[Any]]
    standing: str | None
    reference: ExecutionRecord
    """The execution that is done again: what its input was, this one's is."""
    others: int = 0
    """How many processes run beside it and those it came from."""
    first: bool = False
    """It is the command itself."""
    seals: Mapping[str, str] = field(default_factory=dict)
    """Of its secret variables."""


def find_start_difference(subtree: Subtree, start: ProgramStart) -> str | None:
    """How the start differs from the one that is known; None: not at all."""
    why = variable_difference(recorded_variables(subtree.record, subtree.root), start.environment)
    why = why or _secret_difference(start, recorded_seals(subtree.record, subtree.root))
    if why is not None:
        return why
    if _comparable_descriptors(subtree.record, subtree.held) != _comparable_descriptors(
        start.reference, start.held
    ):
        return "its input or output goes elsewhere"
    if any(
        name == "stdin" for _, _, name, *_ in _comparable_descriptors(subtree.record, subtree.held)
    ):
        whole = subtree.root.number == 1 and start.first
        if not whole or _stdin_digest(subtree.record) != _stdin_digest(start.reference):
            return "it may read what others leave of the input"
    if subtree.root.facets["begun"].get("standing") != start.standing:
        return "its limits, signals or permissions changed"
    busy = (subtree.ended - subtree.started) / 1e9 - subtree.idle
    if start.others and subtree.idle > max(_MAX_IDLE_SECONDS, busy / 3):
        return "it waits, and others run meanwhile"
    return None


def recorded_variables(record: ExecutionRecord, process: Activity) -> dict[str, str]:
    """All variables of a process, as recorded."""
    whole = {**record.itself.environment, **process.environment}
    return {name: value for name, value in whole.items() if value is not None}


def variable_difference(then: Mapping[str, str | None], now: Mapping[str, str]) -> str | None:
    """The first variable that is another; in words."""
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            return f"its variable {name} is not set any more"
        if name not in then:
            return f"its variable {name} is new"
        if then[name] != now[name]:
            return f"its variable {name} changed"
    return None


def recorded_seals(record: ExecutionRecord, process: Activity) -> dict[str, str]:
    """What tells the secret variables of a process from others."""
    return {**record.facets.get("sealed", {}), **process.facets.get("begun", {}).get("sealed", {})}


def _secret_difference(start: ProgramStart, then: Mapping[str, str]) -> str | None:
    for name, value in start.environment.items():
        if MASK in value and name not in then:
            return f"its variable {name} is secret, and was not recorded"
        if MASK in value and then[name] != start.seals.get(name):
            return f"its variable {name} changed"
    return None


def _comparable_descriptors(record: ExecutionRecord, held: list[list[Any]]) -> list[list[Any]]:
    """Descriptors as far as they tell: an input with nothing in it is no input, and how large a
    file was says nothing to who only appends to it."""
    told = []
    for fd, way, name, *place in held:
        if fd == 0 and (name == "/dev/null" or _is_empty_input(record, name)):
            told.append([0, 1, "/dev/null"])
        else:
            appends = len(place) > 1 and place[1] & 1
            told.append([fd, way, name, *(place[:2] if way == 1 or appends else place)])
    return told


def _is_empty_input(record: ExecutionRecord, name: str) -> bool:
    """Whether nothing came: through a pipe, or from a terminal at which nobody typed."""
    if name == "stdin":
        return _stdin_digest(record) is None
    return name in ("stdout", "stderr") and not record.facets.get("typed", 0)


def _stdin_digest(record: ExecutionRecord) -> str | None:
    """The digest of all that came, if anything did."""
    line = record.lines.get(f"{STREAM}{record.execution.uid}/stdin", ())
    return next((version.digest for version in line if version.size), None)
