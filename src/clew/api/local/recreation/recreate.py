"""Recreate a file: from the store, from disk, or by running the executions that made it.

Nothing is run before all needed content is known to be available.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from clew.api.local import versions
from clew.api.local.recreation.content_sources import ClientFiles, PlannedRun, Sources
from clew.api.local.repeat import Say
from clew.documents.comparisons.differences import Difference
from clew.documents.files.recreations import (
    Recreated,
    RecreationPlan,
    UnpackedFile,
)
from clew.documents.files.versions import Restored
from clew.documents.ids import ExecutionId, Locator, Uid
from clew.errors import NotFound
from clew.prov.queries.execution_record import ExecutionRecord, Version, load_record
from clew.prov.queries.formats import STREAM, path_fields
from clew.prov.queries.targets import Target
from clew.replay.repeat.replay_runner import ReplayRunner
from clew.replay.repeat.secret_values import SecretValues
from clew.run.launch.execution_host import Derivation
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState


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
        below = None if to else versions.find_foreign_cwd(project, recreation.target)
        aim = versions.plan_restore(project, recreation.target, to, below, store)
        if dry_run:
            return join_documents(aim, recreation.describe(), dry_run=True)
        versions.check_overwrite(aim, overwrite=overwrite)
        result = recreation.run(say)
        if result.verdict == "identical":
            versions.write_version(store, recreation.target, aim, overwrite=overwrite, below=below)
    return join_documents(aim, result, dry_run=False)


def plan_recreation(project: ProjectState, text: str) -> RecreationPlan:
    """Plan which executions must run to make a file again, wherever it would be written then."""
    with Store(project.directory.store) as store:
        return Recreation(project, store, text, network=False, gpu=False).describe()


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
        self._sources = Sources(project, store, elsewhere)
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
        self._sources.store_inputs(self._runs)
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


def _run_planned(
    project: ProjectState, run: PlannedRun, network: bool
) -> tuple[ExecutionId | None, list[Difference]]:
    """Run it and store all outputs; returns the id of the new execution and the differences."""
    uid = run.record.execution.uid
    collection = Uid(run.record.facets.get("collection", uid))
    project.close()
    runner = ReplayRunner(replace(project.directory, exclude=()), project.settings)
    derivation = Derivation("repetition", parent=uid, collection=collection)
    outcome = runner.run(run.plan, derivation, network=network, show=None)
    again = load_record(project.graph, outcome.execution.uid)
    there = {version.digest for version in again.versions.values() if version.stored}
    missed = run.products(run.wanted - there)
    return outcome.execution.id, [_difference(run.record, again, version) for version in missed]


def _difference(record: ExecutionRecord, again: ExecutionRecord, missed: Version) -> Difference:
    """How the new output differs from the version `missed`."""
    at = missed.locator
    if at.startswith(STREAM):
        at = Locator(at.replace(record.execution.uid, again.execution.uid))
    line = again.lines.get(at)
    now = line[-1].digest if line else None
    kind = "content" if now else "missing"
    return Difference(**path_fields(missed.locator), kind=kind, a=missed.digest, b=now)
