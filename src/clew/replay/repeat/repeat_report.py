"""The result of a repeat, as the document that `repeat` and `commit` return."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.documents.differences import Divergence
from clew.documents.executions import Execution
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import ExecutionRecord
from clew.prov.queries.formats import path_fields
from clew.replay.compare.output_comparison import Comparison
from clew.replay.repeat.repeat_plan import RepeatPlan


@dataclass(frozen=True)
class RepeatReport:
    """A repeat compared with its original, and why they differ."""

    execution: Execution
    of: str
    comparison: Comparison
    divergence: Divergence | None
    ran: Sequence[Mapping[str, Any]]
    reused: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "execution": self.execution.as_json(),
            "of": self.of,
            "verdict": self.comparison.verdict,
            "differences": [difference.as_json() for difference in self.comparison.differences],
            "divergence": self.divergence and self.divergence.as_json(),
            "ran": list(self.ran),
            "reused": list(self.reused),
            "warnings": list(self.warnings),
        }


def list_programs(record: ExecutionRecord, why: Callable[[str], str]) -> list[dict[str, Any]]:
    """List every program that ran, with the reason."""
    programs = (process for process in record.processes if process.exe is not None)
    return [{"command": process.command, "why": why(process.uid)} for process in programs]


def warn_unrecorded_reads(record: ExecutionRecord, plan: RepeatPlan) -> list[str]:
    """Warn of files that the repeat read although the record has no bytes of them."""
    read: dict[bytes, str] = {}
    given = plan.initial_files.entries
    for locator in {record.versions[edge.version].locator for edge in record.used}:
        path = path_of(locator)
        if path is None or path in plan.credentials:
            continue
        if path in given and given[path].kind == "stub":
            read[path] = path_fields(locator)["path"]
    return [
        f"it read {shown}, which the recorded execution did not read: its content is not recorded"
        for _, shown in sorted(read.items())
    ]
