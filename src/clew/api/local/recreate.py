"""Making a file again: from the store, from disk, or by running what made it, as far back as
needed. Nothing starts before it is known that all of it can be had."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from clew.api.local import versions
from clew.api.local.repeat import Say
from clew.errors import ClewError, Damaged, NoContent, NotFound
from clew.prov.locators import file_locator, path_of
from clew.prov.queries import producers
from clew.prov.queries.execution_record import ExecutionRecord, Version, load_record
from clew.prov.queries.formats import STREAM, execution_id, path_fields
from clew.prov.queries.targets import Target
from clew.redaction import matcher
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.recreate_plan import Candidate, CannotRecreate, plan_recreation
from clew.replay.repeat.replay_runner import ReplayRunner
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.stored_listings import listing_reader
from clew.run.launch.execution_host import Derivation
from clew.settings import machine_id
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project_state import ProjectState

_UNKNOWN = "?"
"""Before a locator: a content whose digest nobody knows."""


@dataclass(frozen=True)
class _PlannedRun:
    """One execution of the way."""

    work: Candidate
    record: ExecutionRecord
    plan: repeat_plan.RepeatPlan
    wanted: frozenset[str]
    """What it has to make."""

    def products(self, contents: Collection[str]) -> list[Version]:
        """Where the record has made these contents."""
        made = {edge.version for edge in self.record.generated}
        return [v for v in self.record.versions.values() if v.key in made and v.digest in contents]

    def as_json(self) -> dict[str, Any]:
        return {
            "execution": self.record.execution.id,
            "command": list(self.record.itself.command),
            "makes": sorted(
                {path_fields(one.locator)["path"] for one in self.products(self.wanted)}
            ),
            "as": None,
        }


def recreate(
    project: ProjectState,
    text: str,
    *,
    to: str | None,
    overwrite: bool,
    dry_run: bool,
    network: bool,
    gpu: bool,
    say: Say,
) -> dict[str, Any]:
    """The document of `clew recreate --json`."""
    with Store(project.directory.store) as store:
        way = Recreation(project, store, text, network=network, gpu=gpu)
        below = None if to else versions.foreign_cwd(project, way.target)
        aim = versions.plan_restore(project, way.target, to, below, store)
        document = {**aim.as_json(), **way.as_json(), "dry_run": dry_run}
        if dry_run:
            return document
        versions.check_overwrite(aim, overwrite=overwrite)
        document |= way.walk(say)
        if document["verdict"] == "identical":
            versions.write_version(store, way.target, aim, overwrite=overwrite, below=below)
    return document


class Recreation:
    """How a file can be made again."""

    def __init__(
        self,
        project: ProjectState,
        store: Store,
        text: str,
        *,
        network: bool,
        gpu: bool,
        elsewhere: ClientFiles | None = None,
        values: SecretValues | None = None,
    ) -> None:
        """`elsewhere`: where the caller is, if not on this machine. `values`: the caller's
        secrets, if not the project's."""
        self._project = project
        self._network = network
        self.target = _find_target(project, text, elsewhere.here if elsewhere else None)
        self._supply = _Sources(project, store, elsewhere)
        self._runs = self._supply.way(
            self.target, values or project.secrets, network=network, gpu=gpu
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "runs": [run.as_json() for run in self._runs],
            "taken": [os.fsdecode(path) for path in self._supply.taken.values()],
            "verdict": "identical",
            "differences": [],
        }

    def walk(self, say: Say) -> dict[str, Any]:
        """Run what is to be run: then the target is stored, unless something came out otherwise."""
        for run in self._runs:
            for warning in run.plan.warnings:
                say(f"{run.record.execution.id}: {warning}")
        self._supply.take(self._runs)
        document = self.as_json()
        for number, run in enumerate(self._runs):
            made, differences = _run_planned(self._project, run, self._network)
            document["runs"][number]["as"] = made["id"]
            if differences:
                return document | {"verdict": "different", "differences": differences}
        return document


@dataclass
class ClientFiles:
    """Whoever asks, on another machine: what of its files may be of use is told, and may then be
    brought."""

    here: versions.PathResolver
    brought: Mapping[str, str]
    """By digest, files of that machine that are stored here now, and where they lie there."""
    sought: list[tuple[str, str, int]] = field(default_factory=list)
    """(digest, path, size) of what would be taken, if it lay there."""


def _find_target(project: ProjectState, text: str, here: versions.PathResolver | None) -> Target:
    """The version that `text` names; a path where nothing is any more names its last one."""
    try:
        found = versions.find_stored(project, text, here)
    except NotFound:
        known = [one for one in versions.versions(project, text, here) if one.digest is not None]
        if not known:
            raise
        return versions.find_stored(project, known[-1].id, here)
    if found.kind == "file":
        raise NotFound(
            f"{text} as it is now is of no execution's making",
            hint=f"name a version: clew restore --list {text}",
        )
    return found


class _Sources:
    """What contents can be had without running anything, and who can make the others."""

    def __init__(self, project: ProjectState, store: Store, elsewhere: ClientFiles | None) -> None:
        self._project = project
        self._store = store
        self._elsewhere = elsewhere
        self._machine = machine_id(project.settings)
        self._sound: dict[str, bool] = {}
        self._works: dict[int, Candidate] = {}
        self._keys: dict[int, int] = {}
        self._is_credential = matcher(project.directory.credentials)
        self.taken: dict[str, bytes] = {}
        """What is not stored, and lies on disk as it was: here, or where it was brought from."""
        self._there = cache(self._look)

    # -- deciding

    def way(
        self, found: Target, values: SecretValues, *, network: bool, gpu: bool
    ) -> list[_PlannedRun]:
        """What is to be run, in order, so that the target is there."""
        wanted = found.digest
        assert wanted is not None
        self._prove([wanted])
        while True:
            self._works.clear()
            self._there.cache_clear()
            self.taken.clear()
            try:
                works = [] if self._there(wanted) else plan_recreation(wanted, self._makers)
            except CannotRecreate as error:
                raise self._impossible(found, error.missing) from error
            if self._prove(d for work in works for _, d in self._needed(work) if d is not None):
                break
        used = {wanted}.union(*(self._had(work) for work in works))
        self.taken = {digest: path for digest, path in self.taken.items() if digest in used}
        return self._runs(works, wanted, values, network=network, gpu=gpu)

    def _needed(self, work: Candidate) -> list[tuple[str, str | None]]:
        return producers.list_inputs(self._project.graph, self._keys[work.number])

    def _had(self, work: Candidate) -> set[str]:
        """What of its needs is there already."""
        return {d for _, d in self._needed(work) if d is not None and self._there(d)}

    def _prove(self, digests: Iterable[str]) -> bool:
        """Read what is stored; whether all was as thought."""
        as_thought = True
        for digest in set(digests):
            if digest not in self._sound and self._store.has(digest):
                self._sound[digest] = _readable(self._store, digest)
                as_thought = as_thought and self._sound[digest]
        return as_thought

    def _look(self, digest: str) -> bool:
        if self._elsewhere and digest in self._elsewhere.brought:
            self.taken[digest] = os.fsencode(self._elsewhere.brought[digest])
            return True
        if self._store.has(digest) and self._sound.get(digest, True):
            return True
        path = self._on_disk(digest)
        if path is not None:
            self.taken[digest] = path
        return path is not None

    def _on_disk(self, digest: str) -> bytes | None:
        for locator, size in producers.list_locations(self._project.graph, digest):
            path = path_of(locator)
            if path is None or self._is_credential(os.fsdecode(path)):
                continue  # what is taken is stored
            if os.path.normpath(path) != path:
                continue  # `.aws/./credentials` would not be known as a credential file
            if locator != file_locator(self._machine, path):
                if self._elsewhere and locator == file_locator(self._elsewhere.here.machine, path):
                    self._elsewhere.sought.append((digest, os.fsdecode(path), size))
                continue
            try:
                now = os.lstat(path)
                if os.path.realpath(path) != path:
                    continue  # nor would one behind a link
                alike = stat.S_ISREG(now.st_mode) and now.st_size == size
                if alike and self._store.put_file(path, keep=False).digest == digest:
                    return path
            except (OSError, ClewError):
                continue
        return None

    def _makers(self, content: str) -> list[Candidate]:
        if content.startswith(_UNKNOWN):
            return []
        found = producers.find_producers(self._project.graph, content)
        return [self._work(one.execution, one.number) for one in found]

    def _work(self, key: int, number: int) -> Candidate:
        self._keys[number] = key
        if number not in self._works:
            graph = self._project.graph
            needs = {
                digest or _UNKNOWN + locator
                for locator, digest in producers.list_inputs(graph, key)
                if not self._is_given(locator) and (digest is None or not self._there(digest))
            }
            self._works[number] = Candidate(
                number, frozenset(needs), producers.list_output_digests(graph, key)
            )
        return self._works[number]

    def _is_given(self, locator: str) -> bool:
        """Whether the user gives it: the plan then asks for it."""
        path = path_of(locator)
        return path is not None and self._is_credential(os.fsdecode(path))

    def _impossible(self, found: Target, lacking: frozenset[str]) -> ClewError:
        if found.digest in lacking:
            return NoContent(
                f"{found.label} cannot be made again: no execution made it from what is there",
                hint=f"clew trace {found.label} tells what is known of it",
            )
        names = sorted({self._name(content) for content in lacking})
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return NoContent(
            f"{found.label} cannot be made again: it needs what nobody kept: {some}",
            hint="put that back where it was, as it was, and try again",
        )

    def _name(self, content: str) -> str:
        """A content that is lacking, by where it was."""
        if content.startswith(_UNKNOWN):
            return path_fields(content.removeprefix(_UNKNOWN))["path"]
        for work in self._works.values():
            for locator, digest in self._needed(work):
                if digest == content:
                    return (
                        f"{path_fields(locator)['path']} (as {execution_id(work.number)} found it)"
                    )
        return content

    # -- before it starts

    def _runs(
        self,
        works: list[Candidate],
        wanted: str,
        values: SecretValues,
        *,
        network: bool,
        gpu: bool,
    ) -> list[_PlannedRun]:
        read_listing = listing_reader(self._store)

        def known(answer: str) -> list[bytes]:
            try:
                return read_listing(answer)
            except ClewError:  # then those names are not seen
                return []

        made: set[str] = set()
        runs: list[_PlannedRun] = []
        for number, work in enumerate(works):
            later = {wanted}.union(*(other.inputs for other in works[number + 1 :]))
            record = load_record(self._project.graph, execution_id(work.number))
            record = self._supplied(record, made | self._had(work))
            plan = repeat_plan.make_plan(
                record, read_listing=known, values=values, network=network, gpu=gpu
            )
            runs.append(_PlannedRun(work, record, plan, (work.outputs & later) - made))
            made |= work.outputs & later
        return runs

    def _supplied(self, record: ExecutionRecord, there: set[str]) -> ExecutionRecord:
        """The record as it reads once all it needs is stored."""

        def supplied(version: Version) -> Version:
            digest = version.digest
            lost = digest is None or not (self._store.has(digest) and self._sound.get(digest, True))
            return version._replace(stored=digest in there or (version.stored and not lost))

        return replace(record, versions={k: supplied(v) for k, v in record.versions.items()})

    def take(self, runs: list[_PlannedRun]) -> None:
        """Make room for what is damaged and will come anew, and store what lies on disk."""
        coming = set(self.taken).union(*(run.wanted for run in runs))
        for digest, sound in self._sound.items():
            if not sound and digest in coming:
                self._store.give_up(digest)
        brought = self._elsewhere.brought if self._elsewhere else {}
        for digest, path in self.taken.items():
            if digest not in brought and self._store.put_file(path).digest != digest:
                raise Damaged(f"{os.fsdecode(path)} is changing", hint="try again")
        self._store.flush()


def _readable(store: Store, digest: str) -> bool:
    try:
        for _ in store.read(digest):
            pass
    except (Damaged, NoContent):
        return False
    return True


def _run_planned(
    project: ProjectState, run: _PlannedRun, network: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run it, keeping whatever it makes; the execution it became, and what did not come again."""
    uid = run.record.execution.uid
    collection = str(run.record.facets.get("collection", uid))
    project.close()
    runner = ReplayRunner(replace(project.directory, exclude=()), project.settings)
    derivation = Derivation("repetition", parent=uid, collection=collection)
    outcome = runner.run(run.plan, derivation, network=network, show=None)
    again = load_record(project.graph, outcome.execution["uid"])
    there = {version.digest for version in again.versions.values() if version.stored}
    missed = run.products(run.wanted - there)
    return outcome.execution, [_difference(run.record, again, one) for one in missed]


def _difference(record: ExecutionRecord, again: ExecutionRecord, missed: Version) -> dict[str, Any]:
    """What is in the place of a version that did not come again."""
    at = missed.locator
    if at.startswith(STREAM):
        at = at.replace(record.execution.uid, again.execution.uid)
    line = again.lines.get(at)
    now = line[-1].digest if line else None
    kind = "content" if now else "missing"
    return {**path_fields(missed.locator), "kind": kind, "a": missed.digest, "b": now}
