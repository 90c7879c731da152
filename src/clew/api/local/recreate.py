"""Recreate a file: from the store, from disk, or by running the executions that made it.

Nothing is run before all needed content is known to be available.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec import structs

from clew.api.local import versions
from clew.api.local.repeat import Say
from clew.documents.differences import Difference
from clew.documents.ids import Digest, ExecutionId
from clew.documents.recreations import (
    Copy,
    Recreated,
    RecreationPlan,
    RecreationRun,
    UnpackedFile,
)
from clew.documents.versions import Restored
from clew.errors import ClewError, Damaged, NoContent, NotFound
from clew.prov.locators import file_locator, path_of
from clew.prov.queries import contents
from clew.prov.queries.execution_record import ExecutionRecord, Version, load_record
from clew.prov.queries.formats import STREAM, execution_id, path_fields
from clew.prov.queries.lineage import content_links
from clew.prov.queries.lineage.steps import LineageQueries
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_bytes, digest_text
from clew.redaction import credential_check, open_readonly, withheld_matcher
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.recreate_plan import Candidate, CannotRecreate, plan_recreation
from clew.replay.repeat.replay_runner import ReplayRunner
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import listing_reader
from clew.run.launch.execution_backend import Derivation
from clew.settings import machine_id
from clew.store import Store
from clew.store.archive_members import extract_member

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

_UNKNOWN = "?"
"""Prefix of a locator that stands for a content with an unknown digest."""


@dataclass(frozen=True)
class _PlannedRun:
    """One execution to run again."""

    work: Candidate
    record: ExecutionRecord
    plan: repeat_plan.RepeatPlan
    wanted: frozenset[Digest]
    """The digests it has to produce."""
    needed_at: frozenset[tuple[str, str]]
    """(digest, locator) where later runs read what it produces, or where the target is."""

    def products(self, contents: Collection[str]) -> list[Version]:
        """The versions of the record that have these contents."""
        made = {edge.version for edge in self.record.generated}
        return [v for v in self.record.versions.values() if v.key in made and v.digest in contents]

    def copies(self) -> Iterator[Copy]:
        """The outputs that are needed at other paths, as after a `mv` outside Clew."""
        for digest, locator in sorted(self.needed_at):
            made = sorted(product.locator for product in self.products({digest}))
            if made and locator not in made:
                yield Copy(start=path_fields(made[0])["path"], end=path_fields(locator)["path"])

    def describe(self) -> RecreationRun:
        makes = {path_fields(product.locator)["path"] for product in self.products(self.wanted)}
        return RecreationRun(
            execution=self.record.execution.id,
            command=tuple(self.record.itself.command),
            makes=tuple(sorted(makes)),
            copies=tuple(self.copies()),
            new=None,
        )


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
) -> Recreated:
    with Store(project.directory.store) as store:
        recreation = Recreation(project, store, text, network=network, gpu=gpu)
        below = None if to else versions.foreign_cwd(project, recreation.target)
        aim = versions.plan_restore(project, recreation.target, to, below, store)
        if dry_run:
            return join_documents(aim, recreation.describe(), dry_run=True)
        versions.check_overwrite(aim, overwrite=overwrite)
        result = recreation.run(say)
        if result.verdict == "identical":
            versions.write_version(store, recreation.target, aim, overwrite=overwrite, below=below)
    return join_documents(aim, result, dry_run=False)


def join_documents(aim: Restored, plan: RecreationPlan, *, dry_run: bool) -> Recreated:
    return Recreated(**structs.asdict(aim), **structs.asdict(plan), dry_run=dry_run)


class Recreation:
    """The plan to recreate one file, and its execution."""

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
        """`elsewhere`: the files of the caller, if it is on another machine. `values`: the caller's
        secrets, if not the project's."""
        self._project = project
        self._network = network
        self.target = _find_target(project, text, elsewhere.here if elsewhere else None)
        self._sources = _Sources(project, store, elsewhere)
        self._runs = self._sources.plan(
            self.target, values or project.secrets, network=network, gpu=gpu
        )

    def describe(self) -> RecreationPlan:
        return RecreationPlan(
            runs=tuple(run.describe() for run in self._runs),
            taken=tuple(os.fsdecode(path) for path in self._sources.taken.values()),
            unpacked=tuple(
                UnpackedFile(archive=path_fields(archive.locator)["path"], member=archive.member)
                for archive in self._sources.unpacked.values()
            ),
        )

    def run(self, say: Say) -> RecreationPlan:
        """Run the planned executions; the target is stored then, unless an output differs."""
        for run in self._runs:
            for warning in run.plan.warnings:
                say(f"{run.record.execution.id}: {warning}")
        self._sources.take(self._runs)
        plan = self.describe()
        runs = [*plan.runs]
        for number, run in enumerate(self._runs):
            made, differences = _run_planned(self._project, run, self._network)
            runs[number] = structs.replace(runs[number], new=made)
            if differences:
                return structs.replace(
                    plan, runs=tuple(runs), verdict="different", differences=tuple(differences)
                )
        return structs.replace(plan, runs=tuple(runs))


@dataclass
class ClientFiles:
    """The files of a caller on another machine: those that may be useful are listed in `sought`,
    and the caller may then send them."""

    here: versions.PathResolver
    brought: Mapping[str, str]
    """Files of that machine that were sent and are stored here: their paths there, by digest."""
    sought: list[tuple[str, str, int]] = field(default_factory=list)
    """(digest, path, size) of files that would be used if they are unchanged there."""


def _find_target(project: ProjectState, text: str, here: versions.PathResolver | None) -> Target:
    """The version that `text` names; the path of a deleted file names its last version."""
    try:
        found = versions.find_stored(project, text, here)
    except NotFound:
        known = [one for one in versions.versions(project, text, here) if one.digest is not None]
        if not known:
            raise
        return versions.find_stored(project, known[-1].id, here)
    if found.kind == "file":
        raise NotFound(
            f"{text} as it is now was not made by a recorded execution",
            hint=f"name a version: clew restore --list {text}",
        )
    return found


class _Sources:
    """Which contents are available without running anything, and which executions can make the
    others."""

    def __init__(self, project: ProjectState, store: Store, elsewhere: ClientFiles | None) -> None:
        self._project = project
        self._store = store
        self._elsewhere = elsewhere
        self._machine = machine_id(project.settings)
        self._sound: dict[Digest, bool] = {}
        self._works: dict[int, Candidate] = {}
        self._keys: dict[int, int] = {}
        self._is_credential = credential_check(project.directory.credentials)
        self._is_withheld = withheld_matcher(project.directory.credentials)
        self.taken: dict[Digest, bytes] = {}
        """Paths by digest of contents that are not stored but unchanged on disk, here or on the
        client."""
        self.unpacked: dict[Digest, content_links.Candidate] = {}
        """Archives by digest of contents that are only stored as their members."""
        self._links = content_links.ContentLinks(
            project.graph, LineageQueries(project.graph.connection)
        )
        self._is_available = cache(self._check_available)

    # -- planning

    def plan(
        self, found: Target, values: SecretValues, *, network: bool, gpu: bool
    ) -> list[_PlannedRun]:
        """The executions to run, in order, to recreate the target."""
        wanted = found.digest
        assert wanted is not None
        self._verify([wanted])
        while True:
            self._works.clear()
            self._is_available.cache_clear()
            self.taken.clear()
            self.unpacked.clear()
            try:
                works = [] if self._is_available(wanted) else plan_recreation(wanted, self._makers)
            except CannotRecreate as error:
                raise self._impossible(found, error.missing) from error
            if self._verify(d for work in works for _, d in self._inputs(work) if d is not None):
                break
        used = {wanted}.union(*(self._available_inputs(work) for work in works))
        self.taken = {digest: path for digest, path in self.taken.items() if digest in used}
        self.unpacked = {d: archive for d, archive in self.unpacked.items() if d in used}
        return self._runs(works, found, values, network=network, gpu=gpu)

    def _inputs(self, work: Candidate) -> list[tuple[str, Digest | None]]:
        return contents.list_inputs(self._project.graph, self._keys[work.number])

    def _digests(self, work: Candidate) -> set[tuple[str, str]]:
        """(digest, locator) of the inputs whose content is known."""
        return {(digest, locator) for locator, digest in self._inputs(work) if digest is not None}

    def _available_inputs(self, work: Candidate) -> set[str]:
        """The inputs that are available already."""
        return {d for _, d in self._inputs(work) if d is not None and self._is_available(d)}

    def _verify(self, digests: Iterable[Digest]) -> bool:
        """Read stored contents; whether all were intact."""
        intact = True
        for digest in set(digests):
            if digest not in self._sound and self._store.has(digest):
                self._sound[digest] = _readable(self._store, digest)
                intact = intact and self._sound[digest]
        return intact

    def _check_available(self, digest: Digest) -> bool:
        if self._elsewhere and digest in self._elsewhere.brought:
            self.taken[digest] = os.fsencode(self._elsewhere.brought[digest])
            return True
        if self._store.has(digest) and self._sound.get(digest, True):
            return True
        path = self._on_disk(digest)
        if path is not None:
            self.taken[digest] = path
            return True
        return self._find_in_archive(digest)

    def _find_in_archive(self, digest: Digest) -> bool:
        places = contents.list_locations(self._project.graph, digest)
        if any(self._is_provided(locator) for locator, _ in places):
            return False  # what is used is stored, and credentials must not be
        for archive in self._links.find_in_archives(digest_bytes(digest)):
            if self._store.has(digest_text(archive.digest) or Digest("")):
                self.unpacked[digest] = archive
                return True
        return False

    def _on_disk(self, digest: Digest) -> bytes | None:
        for locator, size in contents.list_locations(self._project.graph, digest):
            path = path_of(locator)
            if path is None or self._is_credential(os.fsdecode(path), partial(open_readonly, path)):
                continue  # what is used is stored, and credentials must not be
            if os.path.normpath(path) != path:
                continue  # `.aws/./credentials` would not match as a credential file
            if locator != file_locator(self._machine, path):
                if self._elsewhere and locator == file_locator(self._elsewhere.here.machine, path):
                    self._elsewhere.sought.append((digest, os.fsdecode(path), size))
                continue
            try:
                now = os.lstat(path)
                if os.path.realpath(path) != path:
                    continue  # nor would a credential file behind a link
                alike = stat.S_ISREG(now.st_mode) and now.st_size == size
                if alike and self._store.put_file(path, keep=False).digest == digest:
                    return path
            except (OSError, ClewError):
                continue
        return None

    def _makers(self, content: str) -> list[Candidate]:
        if content.startswith(_UNKNOWN):
            return []
        found = contents.find_producers(self._project.graph, Digest(content))
        return [self._work(producer.execution, producer.number) for producer in found]

    def _work(self, key: int, number: int) -> Candidate:
        self._keys[number] = key
        if number not in self._works:
            graph = self._project.graph
            needs = {
                digest or _UNKNOWN + locator
                for locator, digest in contents.list_inputs(graph, key)
                if not self._is_provided(locator)
                and (digest is None or not self._is_available(digest))
            }
            self._works[number] = Candidate(
                number, frozenset(needs), contents.list_output_digests(graph, key)
            )
        return self._works[number]

    def _is_provided(self, locator: str) -> bool:
        """Whether the user has to provide it: the plan asks for credential files."""
        path = path_of(locator)
        return path is not None and self._is_withheld(os.fsdecode(path))

    def _impossible(self, found: Target, lacking: frozenset[str]) -> ClewError:
        if found.digest in lacking:
            return NoContent(
                f"{found.label} cannot be recreated: no execution made it from available content",
                hint=f"clew trace {found.label} shows its lineage",
            )
        names = sorted({self._name(content) for content in lacking})
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return NoContent(
            f"{found.label} cannot be recreated: it needs content that was not stored: {some}",
            hint="restore these files unchanged to their paths, and try again",
        )

    def _name(self, content: str) -> str:
        """A missing content, named by its path."""
        if content.startswith(_UNKNOWN):
            return path_fields(content.removeprefix(_UNKNOWN))["path"]
        for work in self._works.values():
            for locator, digest in self._inputs(work):
                if digest == content:
                    return (
                        f"{path_fields(locator)['path']} (as {execution_id(work.number)} found it)"
                    )
        return content

    # -- preparing

    def _runs(
        self,
        works: list[Candidate],
        target: Target,
        values: SecretValues,
        *,
        network: bool,
        gpu: bool,
    ) -> list[_PlannedRun]:
        read_listing = listing_reader(self._store)

        def known(answer: Digest) -> list[bytes]:
            try:
                return read_listing(answer)
            except ClewError:  # then a repeat does not see those names
                return []

        made: set[str] = set()
        runs: list[_PlannedRun] = []
        wanted, place = target.digest, target.locator
        assert wanted is not None and place is not None
        for number, work in enumerate(works):
            later = {wanted}.union(*(other.inputs for other in works[number + 1 :]))
            record = load_record(self._project.graph, execution_id(work.number))
            record = self._supplied(record, made | self._available_inputs(work))
            plan = repeat_plan.make_plan(
                record, read_listing=known, values=values, network=network, gpu=gpu
            )
            new = (work.outputs & later) - made
            needed_at = {(wanted, place)}.union(*(self._digests(w) for w in works[number + 1 :]))
            needed_at = {one for one in needed_at if one[0] in new}
            runs.append(_PlannedRun(work, record, plan, new, frozenset(needed_at)))
            made |= new
        return runs

    def _supplied(self, record: ExecutionRecord, there: set[str]) -> ExecutionRecord:
        """The record as it will be once all its inputs are stored."""

        def supplied(version: Version) -> Version:
            digest = version.digest
            lost = digest is None or not (self._store.has(digest) and self._sound.get(digest, True))
            return version._replace(stored=digest in there or (version.stored and not lost))

        return replace(record, versions={k: supplied(v) for k, v in record.versions.items()})

    def take(self, runs: list[_PlannedRun]) -> None:
        """Drop damaged contents that will be made again, and store the files found on disk and in
        archives."""
        coming = {*self.taken, *self.unpacked}.union(*(run.wanted for run in runs))
        for digest, sound in self._sound.items():
            if not sound and digest in coming:
                self._store.forget_damaged(digest)
        brought = self._elsewhere.brought if self._elsewhere else {}
        for digest, path in self.taken.items():
            if digest not in brought and self._store.put_file(path).digest != digest:
                raise Damaged(f"{os.fsdecode(path)} is changing", hint="try again")
        for digest, archive in self.unpacked.items():
            extract_member(self._store, digest_text(archive.digest) or Digest(""), digest)
        self._store.flush()


def _readable(store: Store, digest: Digest) -> bool:
    try:
        for _ in store.read(digest):
            pass
    except (Damaged, NoContent):
        return False
    return True


def _run_planned(
    project: ProjectState, run: _PlannedRun, network: bool
) -> tuple[ExecutionId | None, list[Difference]]:
    """Run it and store all outputs; returns the id of the new execution and the differences."""
    uid = run.record.execution.uid
    collection = str(run.record.facets.get("collection", uid))
    project.close()
    runner = ReplayRunner(replace(project.directory, exclude=()), project.settings)
    derivation = Derivation("repetition", parent=uid, collection=collection)
    outcome = runner.run(run.plan, derivation, network=network, show=None)
    again = load_record(project.graph, outcome.execution.uid)
    there = {version.digest for version in again.versions.values() if version.stored}
    missed = run.products(run.wanted - there)
    return outcome.execution.id, [_difference(run.record, again, version) for version in missed]


def _difference(record: ExecutionRecord, again: ExecutionRecord, missed: Version) -> Difference:
    """How the output that should be the version `missed` came out instead."""
    at = missed.locator
    if at.startswith(STREAM):
        at = at.replace(record.execution.uid, again.execution.uid)
    line = again.lines.get(at)
    now = line[-1].digest if line else None
    kind = "content" if now else "missing"
    return Difference(**path_fields(missed.locator), kind=kind, a=missed.digest, b=now)
