"""The project of a server: the same methods, answered from there.

`run` runs and records here all the same, and sends it there. What runs again runs there. Folders,
files and remotes that a user names are those of this machine: what they need comes from there,
and goes there, by missing chunk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from clew import project_directory as folders
from clew.api.local.archive import Place
from clew.api.local.project import Project
from clew.api.local.repeat import file_of, may_bring
from clew.api.remote import client_paths, downloads
from clew.api.remote.http_client import Server, server_of
from clew.api.results import (
    Check,
    Checkout,
    Execution,
    Lineage,
    Outcome,
    Problem,
    Reclaimed,
    Recreated,
    Repeated,
    Restored,
    Status,
    Version,
)
from clew.errors import Damaged, NoProject, UsageError
from clew.redaction import CREDENTIALS
from clew.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.local.share import End
    from clew.api.remote.pipelines import RemotePipelines
    from clew.prov.graph import Graph
    from clew.prov.queries.targets import Target

_LONG = 6 * 3600.0
"""Seconds in which even a large store is checked or swept."""


def served(settings: Settings) -> Project:
    """The project of the server of the settings; what waits here to be sent there goes first."""
    here = folders.here(settings)
    if here is not None and here.unsent.is_dir() and any(here.unsent.iterdir()):
        from clew.api.remote.delivery import deliver

        with suppress(OSError), Project(here, settings) as project:
            deliver(project, server_of(settings, here.token)).log_failures(here)
    return RemoteProject(server_of(settings, here.token if here else None), settings)


class RemoteProject(Project):
    """One project, on a server."""

    def __init__(self, server: Server, settings: Settings) -> None:
        self.server = server
        self.settings = settings
        self.given_secrets: dict[str, str] = {}
        self.unrecovered = {}

    @cached_property
    def _about(self) -> dict[str, str]:
        found: dict[str, str] = self.ask("about")
        return found

    @property
    def root(self) -> Path:
        """The folder that holds `.clew/`, there."""
        return Path(self._about["root"])

    @property
    def uid(self) -> str:
        return self._about["uid"]

    def __repr__(self) -> str:
        return f"RemoteProject({self.server.url!r})"

    def close(self) -> None:
        self.server.hang_up()

    # -- doing work

    def run(
        self,
        command: Sequence[str],
        *,
        name: str | None = None,
        content: bool = True,
        exclude: Iterable[str] = (),
        pin: Iterable[str] = (),
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Outcome:
        """Run and record it here, in the project of the current folder, and send it there."""
        from clew.api.open_project import init, open  # noqa: A004 (the public name)

        try:
            here = open(here=True)
        except NoProject:
            here = init(".")
        with here:
            return here.run(
                command, name=name, content=content, exclude=exclude, pin=pin, progress=progress
            )

    def repeat(
        self,
        id: str,  # noqa: A002
        *,
        parameters: Mapping[int, str] | None = None,
        network: bool = False,
        gpu: bool = False,
        incremental: bool = False,
        keep: Place | None = None,
        quiet: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Repeated:
        """As ever, on the machine of the server; files that the parameters name are sent there."""
        downloads.may_be_made(keep)
        words = dict(parameters or {})
        files, sent = self._sent(w for w in words.values() if may_bring(Path(w), CREDENTIALS, say))
        asked = {
            "id": id,
            "parameters": words,
            "files": files,
            "network": network,
            "gpu": gpu,
            "incremental": incremental,
            "quiet": quiet,
            "secrets": self.given_secrets,
        }
        document = downloads.told(self.server, "repeat", asked, say, transfer=sent)
        if keep is not None:
            again = document["execution"]["uid"]
            downloads.folder(self.server, "left", {"id": again}, Path(fspath(keep)))
        return self._repeated(document)

    def give_secrets(self, values: Mapping[str, str]) -> None:
        """As for a local project. A server gets these values and no other variable of this
        process, whatever its records ask for."""
        self.given_secrets.update(values)

    def _sent(self, words: Iterable[str]) -> tuple[dict[str, Any], str | None]:
        """Files of this machine, sent there: what is to be known of each, and the transfer."""
        named = list(words)
        if not named:
            return {}, None
        from clew.api.remote import content_transfer

        with content_transfer.through(self.settings) as store:
            found = {word: file_of(store, Path(word)) for word in named}
            sent = content_transfer.send(self.server, store, [one.digest for one in found.values()])
        names = ("digest", "size", "mode", "mtime")
        return {w: {n: getattr(one, n) for n in names} for w, one in found.items()}, sent

    def checkout(self, id: str, to: Place | None = None) -> Checkout:  # noqa: A002
        from clew.api.remote.checkouts import checkout

        return Checkout.read(checkout(self, id, None if to is None else Path(fspath(to))))

    def status(self, folder: Place | None = None) -> Status:
        from clew.api.remote.checkouts import status

        return Status.read(status(self, None if folder is None else Path(fspath(folder))))

    def commit(
        self,
        message: str | None = None,
        *,
        folder: Place | None = None,
        network: bool = False,
        gpu: bool = False,
        quiet: bool = True,
        say: Callable[[str], None] = lambda _: None,
    ) -> Repeated:
        """As ever, on the machine of the server: what was changed is sent there."""
        from clew.api.remote.checkouts import commit

        document = commit(
            self,
            None if folder is None else Path(fspath(folder)),
            message=message,
            network=network,
            gpu=gpu,
            quiet=quiet,
            say=say,
        )
        return self._repeated(document)

    @property
    def pipelines(self) -> RemotePipelines:
        from clew.api.remote.pipelines import RemotePipelines

        return RemotePipelines(self)

    # -- asking

    def executions(self) -> list[Execution]:
        return [self._execution(found) for found in self.ask("executions")]

    def execution(self, id: str) -> Execution:  # noqa: A002
        return self._execution(self.ask("execution", id=id))

    def show(self, id: str, *, detail: bool = False) -> dict[str, Any]:  # noqa: A002
        found: dict[str, Any] = self.ask("show", id=id, detail=detail)
        return found

    def lineage(
        self,
        target: str,
        *,
        direction: str = "up",
        depth: int | None = None,
        everything: bool = False,
    ) -> Lineage:
        if direction not in ("up", "down"):
            raise UsageError(f"a lineage goes up or down, not {direction!r}")
        more = {"direction": direction, "depth": depth, "everything": everything}
        return Lineage.read(self.ask_about("lineage", target, **more))

    def versions(self, path: Place) -> list[Version]:
        from clew.prov.locators import file_locator
        from clew.settings import machine_id

        place = os.path.realpath(os.fsencode(path))
        locator = file_locator(machine_id(self.settings), place)
        return [Version.read(found) for found in self.ask("versions", locator=locator)]

    def diff(self, a: str, b: str, *, confirm: bool = False) -> dict[str, Any]:
        if confirm:
            asked = {"a": a, "b": b, "secrets": self.given_secrets}
            return downloads.told(self.server, "confirm", asked, lambda _: None)
        found: dict[str, Any] = self.ask("diff", a=a, b=b)
        return found

    def rules(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("rules")
        return found

    # -- bytes

    def chunks(self, version: str) -> Iterator[bytes]:
        asked = {"target": version, "asker": client_paths.asker(self.settings, version)}
        with downloads.behind(self.server, "content", asked) as (known, pieces):
            yield from downloads.verified(pieces, known["digest"])

    def restore(
        self,
        version: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
    ) -> Restored:
        from clew.api.local.versions import may_be_put
        from clew.api.remote.recreate import put
        from clew.prov.queries.targets import Target

        found = Target(**self.ask_about("version", version), keys=())
        place = None if to is None else fspath(to)
        below = None if place else self.foreign_cwd(found)
        plan = self.plan_restore(version, found, place, below)
        if not dry_run:
            may_be_put(plan, overwrite=overwrite)
            put(self, found, plan, below)
        return plan

    def foreign_cwd(self, found: Target) -> str:
        """The working folder of the execution that a version belongs to. Whatever a server names
        counts as made elsewhere: only the user says where on this machine it may write."""
        if found.execution is None:
            return "/"
        return self.execution(f"e{int(found.execution)}").cwd or "/"

    def plan_restore(self, text: str, found: Target, to: str | None, below: str | None) -> Restored:
        """Where the version that `text` names would be put here, and what is there. The server's
        word that this is stored counts only for a file that the user named."""
        from clew.api.local.versions import destination

        assert found.digest is not None
        assert found.size is not None
        place = destination(found, to, below)
        now = client_paths.digest_now(place)
        differs = now is not None and now != found.digest
        named = to is not None or os.fsdecode(place) in client_paths.named(text)
        return Restored(
            version=found.label,
            path=os.fsdecode(place),
            digest=found.digest,
            size=found.size,
            replaces=now if differs else None,
            loses=differs and not (named and self.ask("has", digest=now)),
        )

    def recreate(
        self,
        target: str,
        *,
        to: Place | None = None,
        overwrite: bool = False,
        dry_run: bool = False,
        network: bool = False,
        gpu: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> Recreated:
        from clew.api.remote.recreate import recreate

        document = recreate(
            self,
            target,
            to=None if to is None else fspath(to),
            overwrite=overwrite,
            dry_run=dry_run,
            network=network,
            gpu=gpu,
            say=say,
        )
        return Recreated.read(document)

    # -- what no witness can see

    def note(self, target: str, **remarks: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask_about("note", target, remarks=remarks)
        return found

    # -- for others

    def report(self, id: str, kind: str) -> str:  # noqa: A002
        return str(self.ask("report", id=id, kind=kind))

    def export(
        self,
        id: str,  # noqa: A002
        *,
        format: str = "prov-json",  # noqa: A002
        to: Place | BinaryIO | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> bytes | Path | None:
        from clew.api.local.export import may_be_exported, writing

        place = Path(fspath(to)) if isinstance(to, str | PathLike) else to
        may_be_exported(format, place)
        asked = {"id": id, "format": format}
        with downloads.behind(self.server, "export", asked) as (known, pieces):
            for text in known["said"]:
                say(text)
            if known["folder"]:
                assert isinstance(place, Path)
                downloads.unpack(pieces, place, escaped=format != "dockerfile")
                return place
            if place is None:
                return b"".join(pieces)
            with writing(place) as out:
                for piece in pieces:
                    out.write(piece)
            return place if isinstance(place, Path) else None

    # -- keeping in order

    def remove(self, ids: Iterable[str], *, dry_run: bool = False) -> list[Execution]:
        return [self._execution(x) for x in self.ask("remove", ids=list(ids), dry_run=dry_run)]

    def gc(self, *, dry_run: bool = False) -> Reclaimed:
        return Reclaimed(**self.ask("gc", seconds=_LONG, dry_run=dry_run))

    def fsck(self) -> Check:
        found = self.ask("fsck", seconds=_LONG)
        problems = tuple(Problem(**problem) for problem in found["problems"])
        return Check(checked=found["checked"], problems=problems)

    # -- for this package

    @property
    def graph(self) -> Graph:
        raise Damaged("the graph of a server is asked by the server alone")

    @property
    def _end(self) -> End:
        """Remotes are reached from here: what is handed over passes through this machine."""
        from clew.api.remote.share import Served

        return Served(self)

    def kept_digests(self, execution: str, digests: set[str]) -> set[str]:
        return set(self.ask("kept", execution=execution, digests=sorted(digests)))

    def ask(self, name: str, *, seconds: float = 120.0, **words: Any) -> Any:
        return self.server.json("POST", f"/api/v1/commands/ask/{name}", words, seconds=seconds)

    def ask_about(self, name: str, target: str, **words: Any) -> Any:
        asker = client_paths.asker(self.settings, target)
        return self.ask(name, target=target, asker=asker, **words)
