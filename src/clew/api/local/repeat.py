"""Run an execution again: as it was, or with other parameters."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.documents.ids import Uid
from clew.errors import NotAllowed

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.documents.executions.execution_list import Execution
    from clew.documents.executions.repeats import Repeated
    from clew.prov.queries.execution_record import ExecutionRecord
    from clew.redaction import Redactor
    from clew.replay.repeat.repeat_plan import RepeatPlan
    from clew.replay.reuse.incremental import IncrementalDecider
    from clew.replay.sandbox.initial_files import Entry
    from clew.store import Store

Say = Callable[[str], None]
"""Receives messages for the user."""
Bring = Callable[[str], "Entry | None"]
"""The file that a word of a command names, as an entry; None if it names none."""


def repeat(
    project: ProjectState,
    text: str,
    *,
    parameters: Mapping[int, str],
    network: bool,
    gpu: bool,
    incremental: bool,
    keep: Path | None,
    quiet: bool,
    say: Say,
    bring: Bring | None = None,
    uid: Uid | None = None,
) -> Repeated:
    """`bring` imports files that parameters name, if they are not on this machine. `uid`: as in
    `run_plan`."""
    from clew.documents.executions.repeats import RepeatOptions
    from clew.prov.queries.execution_record import load_record
    from clew.prov.queries.executions import check_is_command, find_execution
    from clew.prov.queries.repeat_results import store_repeat
    from clew.replay.repeat import repeat_plan
    from clew.replay.sandbox.bubblewrap import require_sandbox
    from clew.replay.sandbox.initial_files import make_listing_reader
    from clew.store import Store

    require_sandbox()
    check_is_command(project.graph, find_execution(project.graph, text))
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise NotAllowed(f"{keep} exists already", hint="name a new directory with --keep")
    record = load_record(project.graph, text)
    with Store(project.directory.store) as store:
        plan = repeat_plan.make_plan(
            repeat_plan.drop_word_secrets(record, parameters),
            read_listing=make_listing_reader(store),
            values=project.secrets,
            network=network,
            gpu=gpu,
        )
    if parameters:
        plan = _with_parameters(
            plan, parameters, bring or (lambda word: _import_file(project, Path(word), say))
        )
    for warning in plan.warnings:
        say(warning)
    kind = "modification" if parameters else "repetition"
    began = time.time_ns()
    document = run_plan(
        project,
        record,
        plan,
        kind=kind,
        network=network,
        incremental=incremental,
        quiet=quiet,
        uid=uid,
    )
    words = document.execution.command  # as they were recorded: without secrets
    given = {str(n): words[n] for n in sorted(parameters) if n < len(words)}
    store_repeat(
        project.graph,
        document.execution.uid,
        target=document.of,
        target_uid=record.execution.uid,
        options=RepeatOptions(parameters=given, incremental=incremental, network=network, gpu=gpu),
        began=began,
        result=document.as_json(),
    )
    if keep is not None:
        write_outputs(project, document.execution.uid, keep)
    return document


def run_plan(
    project: ProjectState,
    record: ExecutionRecord,
    plan: RepeatPlan,
    *,
    kind: str,
    network: bool,
    incremental: bool,
    quiet: bool,
    on_recorded: Callable[[Execution], None] = lambda _: None,
    uid: Uid | None = None,
) -> Repeated:
    """Run a plan made from `record` and compare the outputs; `on_recorded` is called with the new
    execution as soon as it is recorded. `uid`: of the new execution. If it is recorded already, by
    a process that was killed before it could compare, nothing runs again."""
    from clew.api.local.diff import CONFIRM_SECONDS, explain_divergence, open_contents
    from clew.documents.executions.repeats import Repeated
    from clew.prov.queries.execution_record import load_record
    from clew.replay.compare.output_comparison import compare
    from clew.replay.compare.volatile_rules import load_rules
    from clew.replay.repeat import repeat_report
    from clew.replay.repeat.replay_runner import ReplayRunner
    from clew.run.launch.execution_host import Derivation

    parent = record.execution.uid
    derivation = Derivation(kind, parent=parent, collection=record.facets.get("collection", parent))
    execution = None if uid is None else _find_recorded(project, uid, parent=record.execution.id)
    project.close()  # keep no connection open while the command runs
    runner = ReplayRunner(project.directory, project.settings)
    decider = None
    if execution is None:
        decider = _incremental_decider(project, record, plan) if incremental else None
        show = None if quiet else (1, 2)
        execution = runner.run(
            plan, derivation, network=network, show=show, decider=decider, uid=uid
        ).execution
    on_recorded(execution)
    again = load_record(project.graph, execution.uid, looks=False)
    with open_contents(project, mask=_redactor(plan).text) as read:
        comparison = compare(record, again, read, load_rules(project.directory.ignore))
    divergence = None
    if comparison.significant:
        again = load_record(project.graph, execution.uid)
        # a deliberate change needs no experiment to confirm it as the cause
        seconds = CONFIRM_SECONDS if kind == "repetition" else 0
        divergence = explain_divergence(project, record, again, comparison, seconds=seconds)
    return Repeated(
        execution=execution,
        of=record.execution.id,
        verdict=comparison.verdict,
        differences=comparison.differences,
        divergence=divergence,
        ran=tuple(decider.ran if decider else repeat_report.list_programs(again)),
        reused=tuple(decider.reused) if decider else (),
        warnings=(*plan.warnings, *repeat_report.warn_unrecorded_reads(again, plan)),
    )


def _find_recorded(project: ProjectState, uid: Uid, *, parent: str | None) -> Execution | None:
    """The repeat of `parent` that has this uid, if its record is complete."""
    from clew.errors import NotFound
    from clew.prov.queries.executions import get_execution
    from clew.run.recovery import recover

    recover(project.directory, project.settings)  # forgets what was interrupted
    try:
        found = get_execution(project.graph, uid, alive=project.is_alive)
    except NotFound:
        return None
    return found if found.ended is not None and found.parent == parent else None


def _redactor(plan: RepeatPlan) -> Redactor:
    """Masks the secrets of the repeat: its files may contain them, only stored output is masked."""
    from clew.redaction import Redactor

    redactor = Redactor({})
    redactor.add_secrets(plan.secrets)
    for file in plan.credentials.values():
        redactor.add_values(file.secrets)
    return redactor


def _incremental_decider(
    project: ProjectState, record: ExecutionRecord, plan: RepeatPlan
) -> IncrementalDecider:
    """Decides which processes need not run again."""
    from clew.replay.reuse.incremental import IncrementalDecider

    return IncrementalDecider(
        project.directory,
        project.settings,
        reference=record,
        machine=plan.machine,
        pinned=plan.facets.get("pinned"),
    )


def _with_parameters(plan: RepeatPlan, parameters: Mapping[int, str], bring: Bring) -> RepeatPlan:
    """The plan with other words, and with files that they name and the record does not have."""
    from dataclasses import replace

    from clew.replay.repeat import repeat_plan
    from clew.replay.repeat.parameters import list_possible_files

    changed = replace(plan, command=repeat_plan.replace_words(plan.command, parameters))
    entries: dict[bytes, Entry | None] = {}
    for word in list_possible_files(parameters.values()):
        path = repeat_plan.resolve_word(word, plan.cwd)
        if path not in plan.initial_files.entries and (entry := bring(word)) is not None:
            entries[path] = entry
    return changed.with_files(entries) if entries else changed


def _import_file(project: ProjectState, path: Path, say: Say) -> Entry | None:
    from clew.store import Store

    if not may_import(path, project.directory.credentials, say):
        return None
    with Store(project.directory.store) as store:
        return store_file(store, path)


def may_import(path: Path, credentials: tuple[str, ...], say: Say) -> bool:
    """Whether `path` is a file that a parameter may import. A credential file is not: it would be
    stored and sent to a server."""
    from clew.redaction import make_credential_check, open_readonly

    if not os.path.isfile(path):  # False also for a word that is too long for a path
        return False
    is_credential = make_credential_check(credentials)
    names = (os.fspath(path.absolute()), os.fspath(path.resolve()))
    if any(is_credential(name, lambda: open_readonly(os.fspath(path))) for name in names):
        say(f"{path} is a credential file and is not imported: provide it with --secret PATH=FILE")
        return False
    return True


def store_file(store: Store, path: Path) -> Entry:
    """A file of this machine, in the store, as an entry of the initial files."""
    import stat

    from clew.replay.sandbox.initial_files import Entry

    content = store.put_file(os.fsencode(path))
    store.flush()
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    return Entry("file", mode, status.st_mtime_ns, content.size, content.digest)


def write_outputs(project: ProjectState, uid: Uid, directory: Path) -> None:
    """Write the outputs of an execution to a directory."""
    import stat

    from clew.prov.locators import path_of
    from clew.prov.queries.execution_record import load_record
    from clew.replay.checkout.working_tree import MODE_BITS, checkout_path
    from clew.safe_path import SafeDirectory
    from clew.store import Store

    record = load_record(project.graph, uid)
    directory.mkdir(parents=True, exist_ok=True)
    places = SafeDirectory(directory)
    with Store(project.directory.store) as store:
        for locator, version in record.left.items():
            path = path_of(locator)
            if path is None or version.digest is None or not version.stored:
                continue
            to = places.join(checkout_path(path, record.itself.cwd or "/"))
            if stat.S_ISLNK(version.mode or 0):
                os.symlink(store.read_whole(version.digest), to)  # noqa: PTH211 (bytes)
            else:
                mode = None if version.mode is None else version.mode & MODE_BITS
                store.restore(version.digest, to, mode=mode, mtime=version.mtime)
