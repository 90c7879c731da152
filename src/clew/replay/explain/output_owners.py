"""Find which processes printed differing parts of a stream."""

from __future__ import annotations

from collections.abc import Iterable

from clew.redaction import MASK
from clew.replay.compare.execution_pair import ExecutionPair
from clew.replay.compare.process_alignment import ProcessPair


def compare_printed(
    executions: ExecutionPair, pairs: set[ProcessPair], stream: str
) -> tuple[set[ProcessPair], set[ProcessPair]]:
    """Of the processes that held this stream, those known to have printed something else, and those
    known to have printed the same. A parent's part contains its children's: if they explain all of
    it, they replace the parent."""
    changed: set[ProcessPair] = set()
    same: set[ProcessPair] = set()
    contents = _contents(executions, stream)
    if contents is None:
        return changed, same
    for pair in pairs:
        a, b = executions.a.output_range(pair.a, stream), executions.b.output_range(pair.b, stream)
        if a is not None and b is not None:
            alike = contents[0][a[0] : a[1]] == contents[1][b[0] : b[1]]
            (same if alike else changed).add(pair)
    unknown = pairs - changed - same
    above = _ancestors(executions, changed | unknown)
    return changed - above, same


def _ancestors(executions: ExecutionPair, pairs: Iterable[ProcessPair]) -> set[ProcessPair]:
    lines = (executions.b.with_ancestors(pair.b) - {pair.b.key} for pair in pairs)
    keys = {key for line in lines for key in line}
    return {executions.alignment.by_b[key] for key in keys if key in executions.alignment.by_b}


def _contents(executions: ExecutionPair, stream: str) -> tuple[bytes, bytes] | None:
    """What both printed, if it is stored unmasked."""
    found = []
    for side in (executions.a, executions.b):
        line = side.versions.get(stream)
        if stream not in ("stdout", "stderr") or not line or not line[-1].stored:
            return None
        content = executions.read(line[-1].digest or "")
        if content is None or MASK.encode() in content:  # what is masked has another length
            return None
        found.append(content)
    return found[0], found[1]
