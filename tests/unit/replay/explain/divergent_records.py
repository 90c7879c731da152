"""Two records of the same command, and what is said of their difference."""

from collections.abc import Callable
from typing import Any

from tests.unit.replay.record_builder import RecordBuilder, read

from clew.prov.queries.execution_record import ExecutionRecord
from clew.replay.compare.output_comparison import compare
from clew.replay.compare.volatile_rules import BUILT_IN
from clew.replay.explain.divergence import Divergence, find_divergence

Tell = Callable[[RecordBuilder, int], None]


def both(tell: Tell, *command: str, **more: Any) -> tuple[ExecutionRecord, ExecutionRecord]:
    """The same told twice: `tell` gets 1 for the first, 2 for the second."""
    runs = []
    for number in (1, 2):
        own = {name: value(number) for name, value in more.items()}
        run = RecordBuilder(*(command or ("sh", "run.sh")), number=number, **own)
        tell(run, number)
        runs.append(run.record())
    return runs[0], runs[1]


def explained(a: ExecutionRecord, b: ExecutionRecord) -> Divergence:
    found = find_divergence(a, b, compare(a, b, read, BUILT_IN), read, BUILT_IN)
    assert found is not None
    return found


def why(a: ExecutionRecord, b: ExecutionRecord) -> tuple[str, list[str]]:
    """The command that is named, and its causes."""
    document = explained(a, b).describe().as_json()
    return " ".join(document["command"]), [cause["cause"] for cause in document["causes"]]


def details(a: ExecutionRecord, b: ExecutionRecord) -> list[str]:
    return [cause["detail"] for cause in explained(a, b).describe().as_json()["causes"]]
