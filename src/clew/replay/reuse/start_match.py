"""Check whether a program starts the same way as a recorded one.

The recorded start was found by its command; variables, descriptors and inherited limits must match
as well. The answer is the first difference, as a sentence. `input_check` checks the files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.prov.locators import stream_locator
from clew.prov.queries.execution_record import Activity, ExecutionRecord
from clew.redaction import MASK
from clew.replay.execution_index import load_seals
from clew.replay.reuse.subtree import Subtree

_MAX_IDLE_SECONDS = 0.03
"""A program that waited longer may have waited for another process."""


@dataclass(frozen=True)
class ProgramStart:
    """A program that is about to start."""

    program: str
    command: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    held: list[list[Any]]
    standing: str | None
    reference: ExecutionRecord
    """The repeated execution, which has the same standard input."""
    others: int = 0
    """How many processes run besides it and its ancestors."""
    first: bool = False
    """Whether it is the command itself."""
    seals: Mapping[str, str] = field(default_factory=dict)
    """Keyed hashes of its secret variables."""


def find_start_difference(subtree: Subtree, start: ProgramStart) -> str | None:
    """How the start differs from the recorded one; None if it does not."""
    why = find_variable_difference(
        load_recorded_variables(subtree.record, subtree.root), start.environment
    )
    why = why or _secret_difference(start, load_seals(subtree.record, subtree.root))
    if why is not None:
        return why
    descriptors = _comparable_descriptors(subtree.record, subtree.held)
    if descriptors != _comparable_descriptors(start.reference, start.held):
        return "its input or output is redirected"
    if any(name == "stdin" for _, _, name, *_ in descriptors):
        whole = subtree.root.number == 1 and start.first
        if not whole or _stdin_digest(subtree.record) != _stdin_digest(start.reference):
            return "it shares its input with other processes"
    if subtree.root.facets["begun"].get("standing") != start.standing:
        return "its limits, signals or permissions changed"
    busy = (subtree.ended - subtree.started) / 1e9 - subtree.idle
    if start.others and subtree.idle > max(_MAX_IDLE_SECONDS, busy / 3):
        return "other processes run at the same time"
    return None


def load_recorded_variables(record: ExecutionRecord, process: Activity) -> dict[str, str]:
    """All recorded variables of a process."""
    variables = {**record.itself.environment, **process.environment}
    return {name: value for name, value in variables.items() if value is not None}


def find_variable_difference(then: Mapping[str, str | None], now: Mapping[str, str]) -> str | None:
    """The first variable that differs, as a sentence."""
    for name in sorted(then.keys() | now.keys()):
        if name not in now:
            return f"its variable {name} is no longer set"
        if name not in then:
            return f"its variable {name} is new"
        if then[name] != now[name]:
            return f"its variable {name} changed"
    return None


def _secret_difference(start: ProgramStart, then: Mapping[str, str]) -> str | None:
    for name, value in start.environment.items():
        if MASK in value and name not in then:
            return f"its variable {name} is secret, and was not recorded"
        if MASK in value and then[name] != start.seals.get(name):
            return f"its variable {name} changed"
    return None


def _comparable_descriptors(record: ExecutionRecord, held: list[list[Any]]) -> list[list[Any]]:
    """The descriptors without what does not matter: an empty input equals no input, and the size of
    a file does not matter to a process that only appends to it."""
    names = []
    for fd, way, name, *place in held:
        if fd == 0 and (name == "/dev/null" or _is_empty_input(record, name)):
            names.append([0, 1, "/dev/null"])
        else:
            appends = len(place) > 1 and place[1] & 1
            names.append([fd, way, name, *(place[:2] if way == 1 or appends else place)])
    return names


def _is_empty_input(record: ExecutionRecord, name: str) -> bool:
    """Whether nothing was read: from a pipe, or from a terminal."""
    if name == "stdin":
        return _stdin_digest(record) is None
    return name in ("stdout", "stderr") and not record.facets.get("typed", 0)


def _stdin_digest(record: ExecutionRecord) -> str | None:
    """The digest of the standard input, if there was any."""
    line = record.lines.get(stream_locator(record.execution.uid, "stdin"), ())
    return next((version.digest for version in line if version.size), None)
