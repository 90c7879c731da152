"""The executions that an execution was derived from, and those that were derived from it.

One is derived from another if it read a file that the other made, or one with the same bytes, got a
parameter from it, or repeats it.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from clew.documents.executions.summary import Relative, Relatives
from clew.prov.graph import Graph
from clew.prov.queries.executions import EXECUTIONS, ExecutionRef, build_documents
from clew.prov.queries.files import File
from clew.prov.queries.formats import execution_id, path_fields
from clew.prov.queries.lineage.content_links import ContentLinks
from clew.prov.queries.lineage.lineage_sql import LineageQueries, Version

How = Literal["file", "copy", "parameter", "repetition", "modification"]
Found = dict[tuple[int, How], list[str]]
"""The paths by the number of the other execution, and how the two are related."""

MOST = 100
"""Relatives that are listed, and paths of each."""
_PARENT = """
SELECT x.number, c.mode FROM started c JOIN execution x ON x.id = c.parent WHERE c.id = ?
"""
_CHILDREN = """
SELECT x.number, s.mode FROM started s JOIN execution x ON x.id = s.id
WHERE s.parent = ? AND x.project = ?
"""
_PARAMETERS = """
SELECT DISTINCT x.number FROM started s JOIN informed i ON i.{} = s.id
JOIN started o ON o.id = i.{} JOIN execution x ON x.id = o.execution
WHERE s.execution = ? AND i.via = 'parameter' AND x.id <> s.execution
"""
_GIVEN, _PASSED = (
    _PARAMETERS.format(*ends) for ends in (("activity", "source"), ("source", "activity"))
)


class Derivations:
    """The relatives of one execution by its files, those of packages left out."""

    def __init__(self, graph: Graph, execution: ExecutionRef, files: Iterable[File]) -> None:
        self._graph = graph
        self._execution = execution
        self._steps = LineageQueries(graph.connection)
        self._links = ContentLinks(graph, self._steps)
        files = list(files)
        found = [version.key for file in files for version in file.versions if version.found]
        self._found = self._steps.versions(found)
        self._made = self._steps.versions(file.left.key for file in files if file.written)

    def find_makers(self) -> dict[str, tuple[int, How]]:
        """By locator, the number of the execution that made a file which this one found."""
        origins = self._steps.origins(self._found)
        loaded = self._steps.versions(set(origins.values()))
        makers: dict[str, tuple[int, How]] = {}
        alone: list[Version] = []
        for key, version in self._found.items():
            origin = loaded[origins[key]]
            if not origin.found and origin.execution != self._execution.key:
                makers[version.locator] = origin.number, "file"
            elif origin.found:
                alone.append(version)
        links = self._links.before(alone)
        best = self._steps.versions(link.best for link in links.values())
        for key, link in links.items():
            number = best[link.best].number
            if not link.weak and number != self._execution.number:
                makers.setdefault(self._found[key].locator, (number, "copy"))
        return makers

    def derived_from(self) -> Relatives:
        found: Found = {}
        for number, mode in self._graph.connection.rows(_PARENT, (self._execution.key,)):
            found[number, _relation(mode)] = []
        for locator, (number, how) in self.find_makers().items():
            found.setdefault((number, how), []).append(path_fields(locator)["path"])
        self._add_parameters(found, _GIVEN)
        return self._describe(found)

    def derived(self) -> Relatives:
        found: Found = {}
        children = (self._execution.key, self._graph.project)
        for number, mode in self._graph.connection.rows(_CHILDREN, children):
            found[number, _relation(mode)] = []
        for number, how, path in self._find_readers():
            paths = found.setdefault((number, how), [])
            if path not in paths:
                paths.append(path)
        self._add_parameters(found, _PASSED)
        return self._describe(found)

    def _find_readers(self) -> Iterator[tuple[int, How, str]]:
        again = self._steps.found_again(self._made)
        later = self._steps.versions(key for keys in again.values() for key in keys)
        for first, keys in again.items():
            for key in keys:
                if later[key].number != self._execution.number:
                    yield later[key].number, "file", path_fields(self._made[first].locator)["path"]
        for first, version, link in self._links.after(list(self._made.values())):
            if version.number != self._execution.number and not link.weak:
                yield version.number, "copy", path_fields(self._made[first].locator)["path"]

    def _add_parameters(self, found: Found, sql: str) -> None:
        for (number,) in self._graph.connection.rows(sql, (self._execution.key,)):
            found[number, "parameter"] = []

    def _describe(self, found: Found) -> Relatives:
        numbers = sorted({number for number, _ in found})
        sql = EXECUTIONS.replace("{}", "AND x.number IN ({})")
        rows = self._graph.connection.rows_in(sql, numbers[:MOST], before=(self._graph.project,))
        documents = {e.id: e for e in build_documents(self._graph, rows, lambda _: False)}
        return Relatives(
            total=len(numbers),
            executions=tuple(
                Relative(
                    id=document.id,
                    uid=document.uid,
                    started=document.started,
                    name=document.name,
                    task=document.task,
                    command=tuple(document.command),
                    how=how,
                    paths=tuple(paths[:MOST]),
                )
                for (number, how), paths in sorted(found.items())
                if (document := documents.get(execution_id(number))) and document.id
            ),
        )


def _relation(mode: str | None) -> How:
    return "modification" if mode == "modification" else "repetition"
