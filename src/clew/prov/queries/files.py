"""The paths that an execution used, with their roles, and the versions of a path.

The role of a path: *transient* if it was written and removed, *output* if it was written, else
*input*; files of `/proc` and `/sys` are never outputs. The last version decides whether a file was
removed: a replaced file still exists.
"""

from dataclasses import dataclass, field

from clew.documents.document import from_nanoseconds
from clew.documents.executions.detail import Role
from clew.documents.files.versions import Version
from clew.documents.ids import Digest, Locator
from clew.prov import tables
from clew.prov.graph import Graph
from clew.prov.locators import is_device_path, path_of
from clew.prov.queries.formats import NETWORK, execution_id, path_fields, version_id
from clew.prov.row_keys import digest_text, location_key

_VERSIONS = """
SELECT v.id, v.ordinal, v.maker, l.locator, c.digest, c.size, c.mode, c.stored, c.package
FROM version v JOIN location l ON l.id = v.location LEFT JOIN content c ON c.version = v.id
WHERE v.execution = ? ORDER BY l.locator, v.ordinal
"""
_EDGES = """
SELECT DISTINCT edge.version, edge.how FROM version v JOIN {} edge ON edge.version = v.id
WHERE v.execution = ?
"""
_USED, _GENERATED, _INVALIDATED = (
    _EDGES.replace("{}", table) for table in ("used", "generated", "invalidated")
)
_DEVICES = """
SELECT DISTINCT l.locator FROM version v JOIN location l ON l.id = v.location
WHERE v.execution = ? AND l.locator LIKE ? ORDER BY l.locator
"""
_PROCESSES = "SELECT count(*) FROM started WHERE execution = ? AND id <> execution"
_OF_PATH = (
    """
SELECT x.number, v.ordinal, v.maker, v.execution, v.at, c.digest, c.size, c.mode, c.mtime, c.stored
FROM version v JOIN execution x ON x.id = v.execution LEFT JOIN content c ON c.version = v.id
WHERE v.id IN ("""
    + tables.VERSIONS_AT_LOCATION
    + ") ORDER BY v.at, x.number, v.ordinal"
)


@dataclass(frozen=True)
class FileVersion:
    """One version that an execution accessed."""

    key: int
    ordinal: int
    found: bool
    read: bool
    written: bool
    invalidated: bool
    digest: Digest | None
    size: int | None
    mode: int | None
    stored: bool
    package: str | None


@dataclass
class File:
    """One path, and the versions of it that an execution accessed, in order."""

    locator: Locator
    versions: list[FileVersion] = field(default_factory=list)

    @property
    def read(self) -> bool:
        return any(version.read for version in self.versions)

    @property
    def written(self) -> bool:
        return any(version.written for version in self.versions)

    @property
    def left(self) -> FileVersion:
        """The version it wrote last, else the one it read."""
        written = [version for version in self.versions if version.written]
        return (written or self.versions)[-1]

    @property
    def role(self) -> Role:
        if not self.written or _is_pseudo_file(self.locator):
            return "input"
        return "transient" if self.versions[-1].invalidated else "output"


def list_files(graph: Graph, execution: int) -> list[File]:
    """Every file and stream that the execution accessed, by path; network peers and devices are not
    files."""
    connection = graph.connection
    used: dict[int, set[str]] = {}
    for version, how in connection.rows(_USED, (execution,)):
        used.setdefault(version, set()).add(how)
    generated = {row[0] for row in connection.rows(_GENERATED, (execution,))}
    invalidated = {row[0] for row in connection.rows(_INVALIDATED, (execution,))}
    answer: list[File] = []
    for row in connection.rows(_VERSIONS, (execution,)):
        key, ordinal, maker, locator, digest, size, mode, stored, package = row
        if locator.startswith(NETWORK) or _is_device(locator):
            continue
        if not answer or answer[-1].locator != locator:
            answer.append(File(locator))
        answer[-1].versions.append(
            FileVersion(
                key=key,
                ordinal=ordinal,
                found=maker == execution,
                read=bool(used.get(key, set()) - {"append"}),
                written=key in generated,
                invalidated=key in invalidated,
                digest=digest_text(digest),
                size=size,
                mode=mode,
                stored=bool(stored),
                package=package,
            )
        )
    return answer


def list_devices(graph: Graph, execution: int) -> list[str]:
    """The paths of the devices that an execution used."""
    rows = graph.connection.rows(_DEVICES, (execution, "file://%/dev/%"))
    return [path_fields(locator)["path"] for (locator,) in rows if _is_device(locator)]


def _is_device(locator: Locator) -> bool:
    return is_device_path(path_of(locator) or b"")


def _is_pseudo_file(locator: Locator) -> bool:
    return (path_of(locator) or b"").startswith((b"/proc/", b"/sys/"))


def count_totals(graph: Graph, execution: int) -> tuple[int, int, int, int]:
    """Processes, inputs, outputs and bytes, counted from the rows."""
    row = graph.connection.row(_PROCESSES, (execution,))
    seen = list_files(graph, execution)
    roles = [file.role for file in seen]
    sizes: dict[str, int] = {}
    for file in seen:
        for version in file.versions:
            if version.digest is not None and version.size is not None:
                sizes[version.digest] = version.size
    processes = int(row[0]) if row else 0
    return processes, roles.count("input"), roles.count("output"), sum(sizes.values())


def list_versions(graph: Graph, locator: Locator) -> list[Version]:
    """Every version of a path the graph knows, oldest first, with the name to restore it by."""
    key = location_key(graph.project_uid, locator)
    shown = path_fields(locator)
    answer = []
    for row in graph.connection.rows(_OF_PATH, (key, key)):
        number, ordinal, maker, execution, at, digest, size, mode, mtime, stored = row
        answer.append(
            Version(
                id=version_id(number, locator, ordinal),
                **shown,
                execution=execution_id(number),
                ordinal=ordinal,
                found=maker == execution,
                at=from_nanoseconds(at),
                digest=digest_text(digest),
                size=size,
                mode=mode,
                mtime=mtime,
                stored=bool(stored),
            )
        )
    if graph.is_restricted:
        from clew.prov.queries.cluster.visibility import withhold_versions

        return withhold_versions(graph, locator, answer)
    return answer
