"""Find the contents that recreating a file needs: in the store, in stored archives, on disk, or
from executions that can make them again.

Nothing is run here: `Sources.plan` finds the executions to run, in order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from clew.api.local import versions
from clew.documents.files.recreations import (
    Copy,
    RecreationRun,
)
from clew.documents.ids import Digest, Locator
from clew.errors import ClewError, Damaged, NoContent
from clew.prov.locators import file_locator, path_of
from clew.prov.queries import contents
from clew.prov.queries.execution_record import ExecutionRecord, Version, load_record
from clew.prov.queries.formats import execution_id, path_fields
from clew.prov.queries.lineage import content_links
from clew.prov.queries.lineage.lineage_sql import LineageQueries
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_bytes, digest_text
from clew.redaction import make_credential_check, make_withheld_matcher, open_readonly
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.recreate_plan import Candidate, CannotRecreate, plan_recreation
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import make_listing_reader
from clew.settings import machine_id
from clew.store import Store
from clew.store.archive_members import extract_member

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState

_UNKNOWN = "?"
"""Prefix of a locator that stands for a content with an unknown digest."""


@dataclass(frozen=True)
class PlannedRun:
    """One execution to run again."""

    work: Candidate
    record: ExecutionRecord
    plan: repeat_plan.RepeatPlan
    wanted: frozenset[Digest]
    """The digests it has to produce."""
    needed_at: frozenset[tuple[Digest, Locator]]
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


@dataclass
class ClientFiles:
    """The files of a caller on another machine: those that may be useful are listed in `sought`,
    and the caller may then send them."""

    here: versions.PathResolver
    brought: Mapping[str, str]
    """Files of that machine that were sent and are stored here: their paths there, by digest."""
    sought: list[tuple[Digest, str, int]] = field(default_factory=list)
    """(digest, path, size) of files that would be used if they are unchanged there."""


class Sources:
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
        self._is_credential = make_credential_check(project.directory.credentials)
        self._is_withheld = make_withheld_matcher(project.directory.credentials)
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
    ) -> list[PlannedRun]:
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

    def _inputs(self, work: Candidate) -> list[tuple[Locator, Digest | None]]:
        return contents.list_inputs(self._project.graph, self._keys[work.number])

    def _digests(self, work: Candidate) -> set[tuple[Digest, Locator]]:
        """(digest, locator) of the inputs whose content is known."""
        return {(digest, locator) for locator, digest in self._inputs(work) if digest is not None}

    def _available_inputs(self, work: Candidate) -> set[Digest]:
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

    def _is_provided(self, locator: Locator) -> bool:
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
    ) -> list[PlannedRun]:
        read_listing = make_listing_reader(self._store)

        def known(answer: Digest) -> list[bytes]:
            try:
                return read_listing(answer)
            except ClewError:  # then a repeat does not see those names
                return []

        made: set[str] = set()
        runs: list[PlannedRun] = []
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
            runs.append(PlannedRun(work, record, plan, new, frozenset(needed_at)))
            made |= new
        return runs

    def _supplied(self, record: ExecutionRecord, there: set[str]) -> ExecutionRecord:
        """The record as it will be once all its inputs are stored."""

        def supplied(version: Version) -> Version:
            digest = version.digest
            lost = digest is None or not (self._store.has(digest) and self._sound.get(digest, True))
            return version._replace(stored=digest in there or (version.stored and not lost))

        return replace(record, versions={k: supplied(v) for k, v in record.versions.items()})

    def store_inputs(self, runs: list[PlannedRun]) -> None:
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
