"""What a project holds: to be asked, taken out, remarked upon and handed on. Nothing runs here.

Questions go to the graph, bytes to the store; this module only knows which is asked what. The
graph is opened when it is first needed and closed with the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from clew.errors import UsageError
from clew.project_directory import Folder
from clew.settings import Settings

if TYPE_CHECKING:
    from clew.api.results import Execution, Lineage, Restored, Version
    from clew.prov.graph import Graph

Place = str | PathLike[str]


class Archive:
    """All of a project but its work. Use it in a `with`, or `close` it."""

    def __init__(self, folder: Folder, settings: Settings) -> None:
        self.directory = folder
        self.settings = settings
        self.unrecovered: dict[str, str] = {}
        """By uid, why the record of a killed execution could not be completed."""

    @property
    def root(self) -> Path:
        """The folder that holds `.clew/`."""
        return self.directory.root

    @property
    def uid(self) -> str:
        """The project's name anywhere."""
        return self.directory.uid

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.root)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; a later question opens it again."""
        graph = self.__dict__.pop("graph", None)
        if graph is not None:
            graph.connection.close()

    def _recover(self) -> None:
        """Complete the records of executions whose recorder was killed."""
        from clew.run.execution_locks import has_killed

        self.unrecovered = {}
        if has_killed(self.directory):
            from clew.run.recovery import recover

            found = recover(self.directory, self.settings)
            self.unrecovered = {left.uid: left.why for left in found}

    # -- asking

    def executions(self) -> list[Execution]:
        """All executions, oldest first."""
        from clew.prov.queries.executions import executions

        return [self._execution(found) for found in executions(self.graph, alive=self.is_alive)]

    def execution(self, id: str) -> Execution:  # noqa: A002 (the word users know it by)
        """One execution, by id (`e2`), name or uid."""
        from clew.prov.queries.executions import execution

        return self._execution(execution(self.graph, id, alive=self.is_alive))

    def show(self, id: str, *, detail: bool = False) -> dict[str, Any]:  # noqa: A002
        """The document of `clew show --json`; with `detail` also every file and network peer."""
        from clew.prov.queries.show import show

        document = show(self.graph, id, alive=self.is_alive, detail=detail)
        if why := self.unrecovered.get(document["uid"]):
            lost = {"what": "record", "why": f"not recovered: {why}", "path": None, "by": None}
            document["gaps"].append(lost)
        return document

    def lineage(
        self,
        target: str,
        *,
        direction: str = "up",
        depth: int | None = None,
        everything: bool = False,
    ) -> Lineage:
        """Where `target` came from (`up`), or what it went into (`down`), across executions.

        A target is a path, a version (`e2:PATH`), a process (`e2.p3`), an execution, or a digest.
        Files of installed packages are counted, not named, unless `everything` is asked for.
        """
        if direction not in ("up", "down"):
            raise UsageError(f"a lineage goes up or down, not {direction!r}")
        from clew.api.local.versions import find
        from clew.api.results import Lineage
        from clew.prov.queries.lineage.lineage import lineage

        found = find(self, target)
        return Lineage.read(
            lineage(self.graph, found, direction=direction, depth=depth, everything=everything)
        )

    def versions(self, path: Place) -> list[Version]:
        """Every version of the file at `path` that was recorded, oldest first."""
        from clew.api.local.versions import versions

        return versions(self, fspath(path))

    def rules(self) -> list[dict[str, Any]]:
        """Which differences do not matter: `{name, paths, what}`, this project's own first."""
        from clew.replay.compare.volatile_rules import rules

        known = rules(self.directory.ignore)
        return [{"name": r.name, "paths": list(r.paths), "what": r.what} for r in known]

    # -- bytes

    def read(self, version: str) -> bytes:
        """The bytes of a version."""
        return b"".join(self.chunks(version))

    def chunks(self, version: str) -> Iterator[bytes]:
        """The bytes of a version, piece by piece: no matter how large it is."""
        from clew.api.local.versions import chunks

        return chunks(self, version)

    def restore(
        self,
        version: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        """Bring a version back, to where it was or to the file or folder `to`.

        A different file in that place whose content is stored nowhere would be lost: then it
        is NotAllowed, unless `overwrite` is given.
        """
        from clew.api.local.versions import restore

        place = None if to is None else fspath(to)
        return restore(self, version, to=place, overwrite=overwrite, dry_run=dry_run)

    # -- what no witness can see

    def note(self, target: str, **remarks: str) -> list[dict[str, Any]]:
        """Add remarks to an execution, a process, or a version; all of its notes are returned."""
        from clew.api.local.notes import note

        return note(self, target, remarks)

    def notes(self, target: str) -> list[dict[str, Any]]:
        """What was noted about a target, in order."""
        return self.note(target)

    def source(self, path: Place, url: str) -> None:
        """Say that the file at `path`, as it is now, was taken from `url`."""
        self.note(fspath(path), source=url)

    # -- for others

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        """An execution's `requirements` (for pip), system `packages`, or `readme` section."""
        from clew.api.local.export import report

        return report(self, id, kind)

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: Place | BinaryIO | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> bytes | Path | None:
        """An execution as `prov-json`, `prov-n`, `ro-crate`, `oci` or `dockerfile`.

        Without `to` a PROV document is returned; with it, it is written there, to a path or an
        open file, as an OCI image is. An RO-Crate and a Dockerfile with its files are folders:
        `to` must name one that does not exist yet. `say` is told, before anything is written,
        what an image or a Dockerfile cannot hold.
        """
        from clew.api.local.export import export

        place = Path(fspath(to)) if isinstance(to, str | PathLike) else to
        return export(self, id, format=format, to=place, say=say)

    # -- for this package

    @cached_property
    def graph(self) -> Graph:
        from clew.db import connect
        from clew.prov.graph import Graph

        self._recover()
        connection = connect(self.directory.graph, address=self.settings.graph)
        return Graph(connection, self.directory.uid, signers=self.settings.config)

    def is_alive(self, uid: str) -> bool:
        from clew.run.execution_locks import is_alive as alive

        return alive(self.directory, uid)

    def _execution(self, document: dict[str, Any]) -> Execution:
        from clew.api.executions import Execution

        return Execution.read(document, ask=lambda uid: self.show(uid, detail=True))
