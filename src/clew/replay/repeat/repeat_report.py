"""Parts of the result of a repeat."""

from clew.documents.executions.repeats import RanProgram
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import ExecutionRecord
from clew.prov.queries.formats import path_fields
from clew.replay.repeat.repeat_plan import RepeatPlan


def list_programs(record: ExecutionRecord) -> list[RanProgram]:
    """List every program that ran."""
    programs = (process for process in record.processes if process.exe is not None)
    return [RanProgram(command=tuple(program.command), why="asked for") for program in programs]


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
