"""Index one execution's record by process: what each used, wrote, looked up and started."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from clew.documents.ids import Digest, Locator, ProcessId
from clew.prov.queries.execution_record import Activity, Edge, ExecutionRecord, Look, Version
from clew.prov.queries.formats import path_fields, process_id

Key = TypeVar("Key")
Member = TypeVar("Member")


def group(pairs: Iterable[tuple[Key, Member]]) -> dict[Key, list[Member]]:
    """The members of each key, in order."""
    groups: dict[Key, list[Member]] = defaultdict(list)
    for key, member in pairs:
        groups[key].append(member)
    return groups


class ExecutionIndex:
    """The record of one execution, indexed by process."""

    def __init__(self, record: ExecutionRecord, name: Callable[[Locator], str] = str) -> None:
        """`name` maps a locator to the entity's name, which both compared executions share."""
        self.record = record
        self.name = name

    def id(self, process: Activity) -> ProcessId:
        return process_id(self.record.execution.number, process.number, process.uid)

    @cached_property
    def used(self) -> dict[int, list[tuple[Edge, Version]]]:
        """The versions that each process used, in order, except those it wrote itself."""
        edges = (e for e in self.record.used if e.activity not in self.writers[e.version])
        return group((edge.activity, self._with_version(edge)) for edge in edges)

    @cached_property
    def generated(self) -> dict[int, list[tuple[Edge, Version]]]:
        return group((edge.activity, self._with_version(edge)) for edge in self.record.generated)

    def _with_version(self, edge: Edge) -> tuple[Edge, Version]:
        return edge, self.record.versions[edge.version]

    @cached_property
    def versions(self) -> dict[str, list[Version]]:
        """The versions of each entity in order, by name."""
        return {self.name(locator): line for locator, line in self.record.lines.items()}

    @cached_property
    def writers(self) -> dict[int, set[int]]:
        """The processes that wrote each version."""
        writers: dict[int, set[int]] = defaultdict(set)
        for edge in self.record.generated:
            writers[edge.version].add(edge.activity)
        return writers

    @cached_property
    def write_times(self) -> dict[int, dict[int, int]]:
        """By version, when each process began to write it, or else removed it."""
        times: dict[int, dict[int, int]] = defaultdict(dict)
        for edges in (self.record.generated, self.record.invalidated):
            new: dict[int, dict[int, int]] = defaultdict(dict)
            for edge in edges:
                new[edge.version].setdefault(edge.activity, edge.at)
            times = defaultdict(dict, {**new, **times})
        return times

    @cached_property
    def last_versions(self) -> dict[str, Version]:
        """The last version of each file and stream, by displayed path."""
        lines = self.record.lines.values()
        return {path_fields(line[-1].locator)["path"]: line[-1] for line in lines}

    @cached_property
    def looks(self) -> dict[int, list[Look]]:
        return group((look.activity, look) for look in self.record.looked)

    @cached_property
    def children(self) -> dict[int, list[Activity]]:
        return group((process.parent or 0, process) for process in self.record.processes)

    @cached_property
    def sources(self) -> dict[int, list[int]]:
        """By process, the processes that passed it data without a file."""
        links = ((learnt, source, via) for learnt, source, _, via in self.record.informed)
        return group((learnt, s) for learnt, s, via in links if via not in ("fork", "exec"))

    @cached_property
    def _digests(self) -> dict[int, Digest]:
        """Digests of versions that were moved but never read: a move keeps the bytes."""
        return {
            key: version.digest
            for key, (_, version) in self.record.moves.items()
            if version.digest is not None and self.record.versions[key].digest is None
        }

    def digest(self, version: Version) -> Digest | None:
        return version.digest or self._digests.get(version.key)

    def environment(self, process: Activity) -> dict[str, str]:
        """All variables of a process. One that never called exec has its parent's."""
        while process.exe is None and process.parent in self.record.activities:
            process = self.record.activities[process.parent]
        inherited = self.record.itself.environment
        changed = {} if process.key == self.record.itself.key else process.environment
        merged = {**inherited, **changed}
        return {name: value for name, value in merged.items() if value is not None}

    def seals(self, process: Activity) -> dict[str, str]:
        """Keyed hashes of the secret variables of a process, with which two can be compared."""
        while process.exe is None and process.parent in self.record.activities:
            process = self.record.activities[process.parent]
        return load_seals(self.record, process)

    @cached_property
    def _successors(self) -> dict[str, Activity]:
        """The program that a process became by exec, by the uid before."""
        successors: dict[str, Activity] = {}
        for process in self.record.processes:
            stem, _, ordinal = process.uid.rpartition("-")
            if ordinal.isdigit() and int(ordinal):
                successors[f"{stem}-{int(ordinal) - 1}"] = process
        return successors

    def successor(self, process: Activity) -> Activity | None:
        return self._successors.get(process.uid)

    def exec_chain(self, process: Activity) -> list[Activity]:
        """The program and those it became by exec, in order."""
        chain = [process]
        while (after := self.successor(chain[-1])) is not None:
            chain.append(after)
        return chain

    def end(self, process: Activity) -> int:
        """The time it ended or called exec; a process without a recorded end comes last."""
        after = self.successor(process)
        if process.ended is None and after is not None:
            return after.started
        return 1 << 63 if process.ended is None else process.ended

    def output_range(self, process: Activity, stream: str) -> tuple[int, int] | None:
        """The part of stdout or stderr that only it and its children wrote."""
        output = process.facets.get("begun", {}).get("output", {})
        start_end = output.get(stream)
        return (start_end[0], start_end[1]) if start_end else None

    def ancestors(self, process: Activity) -> Iterator[Activity]:
        """Its ancestors from its parent upwards; the execution itself is last."""
        while process.parent in self.record.activities:
            process = self.record.activities[process.parent]
            yield process

    def with_ancestors(self, process: Activity) -> set[int]:
        """The keys of the process and its ancestors."""
        return {process.key, *(above.key for above in self.ancestors(process))}

    def overlap(self, a: Activity, b: Activity) -> bool:
        """Whether they ran at the same time, and neither is an ancestor of the other."""
        if a.key in self.with_ancestors(b) or b.key in self.with_ancestors(a):
            return False
        return a.started < self.end(b) and b.started < self.end(a)


def load_seals(record: ExecutionRecord, process: Activity) -> dict[str, str]:
    """Keyed hashes of the secret variables that a process was started with."""
    return {**record.facets.get("sealed", {}), **process.facets.get("begun", {}).get("sealed", {})}
