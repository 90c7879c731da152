"""Run a plan without recording it, to explain a difference.

A diagnostic run uses the same sandbox and tracer as a repeat, with the pins to test. Its outputs
are read from the sandbox's upper layer and then deleted. Neither the graph nor the store changes.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import stat
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from clew.documents.ids import Uid
from clew.errors import ClewError
from clew.project_directory import ProjectDirectory
from clew.prov.queries.execution_record import ExecutionRecord
from clew.redaction import Redactor
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.repeat_plan import RepeatPlan
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.bubblewrap import Sandbox, SandboxConfig
from clew.replay.sandbox.file_cache import FileCache
from clew.replay.sandbox.initial_files import make_listing_reader
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import Derivation, LaunchOptions
from clew.run.launch.pins import Pins
from clew.run.spool_directories import hold_scratch
from clew.run.stdio.stdin_demand import StdinDemand
from clew.store import Store
from clew.tree_removal import remove_tree


@dataclass(frozen=True)
class Observation:
    """The result of a diagnostic run."""

    status: int
    contents: Mapping[str, str]
    """The digests of the files it wrote, by path, and of `stdout` and `stderr`."""


class DiagnosticRunner:
    """Runs diagnostics for at most `seconds`; a context manager. `values`: the caller's secrets."""

    def __init__(
        self, directory: ProjectDirectory, *, seconds: float, values: SecretValues
    ) -> None:
        self._directory = directory
        self._values = values
        self._end = time.monotonic() + seconds

    def __enter__(self) -> DiagnosticRunner:
        with ExitStack() as stack:
            self._scratch = stack.enter_context(hold_scratch(self._directory))
            self._store = stack.enter_context(Store(self._directory.store))
            self._held = stack.pop_all()
        self._read_listing = make_listing_reader(self._store)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def plan(self, record: ExecutionRecord) -> RepeatPlan | None:
        """Plan a run of the record; None if it is impossible or needs a credential file that has
        changed."""
        try:
            plan = repeat_plan.make_plan(
                record, read_listing=self._read_listing, values=self._values, network=False
            )
        except ClewError:
            return None
        return plan if all(file.matches_record for file in plan.credentials.values()) else None

    def observe(self, plan: RepeatPlan, pins: Pins, *, seconds: float) -> Observation | None:
        """Run the plan; None if it failed to run, took much longer than the recorded `seconds`, or
        no time is left."""
        longest = min(3 * seconds + 20, self._end - time.monotonic())
        if longest < seconds:
            return None
        scratch = self._scratch / secrets.token_hex(4)
        scratch.mkdir()
        try:
            return self._run(plan, pins, scratch, longest)
        except (ClewError, OSError):
            return None
        finally:
            remove_tree(scratch)

    def _run(
        self, plan: RepeatPlan, pins: Pins, scratch: Path, seconds: float
    ) -> Observation | None:
        root = FileCache(self._directory.cache, self._store, roots=self._scratch / "roots").root(
            plan.initial_files
        )
        stdin = plan.stdin
        config = SandboxConfig(
            environ=plan.environ,
            cwd=Path(plan.cwd),
            machine=plan.machine,
            facets=dict(plan.facets),
            packages={},
            derivation=Derivation("repetition", parent=Uid(""), collection=Uid("")),
            show=None,
            stdin=None if stdin is None else lambda: self._store.read(stdin),
            credentials=plan.credentials,
            devices=plan.devices,
        )
        sandbox = Sandbox(root, config, scratch / "sandbox", boot=secrets.token_hex(4))
        try:
            return self._watched(sandbox, plan, pins, scratch, seconds)
        finally:
            sandbox.close()

    def _watched(
        self, sandbox: Sandbox, plan: RepeatPlan, pins: Pins, scratch: Path, seconds: float
    ) -> Observation | None:
        kept = sandbox.open_streams(
            scratch,
            redactor=Redactor({}, ()),
            limit=self._directory.stream_limit,
            demand=StdinDemand(),
        )
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        tracer = sandbox.start(
            LaunchOptions(
                command=plan.command,
                trace=scratch / "trace",
                save_to=None,
                notify=null,
                exclude=(),
                streams=kept,
                blocked=(),
                pins=pins,
            )
        )
        os.close(null)
        kept.started()
        in_time = False
        try:
            sandbox.finish_start()
            in_time = _ends_within(tracer, seconds)
        finally:
            if not in_time:
                os.kill(tracer, signal.SIGKILL)
            status = tracer_process.wait(tracer)
            kept.finish()
        if not in_time:
            return None
        streams = {name: keeper.digest for name, keeper in kept.kept.items() if name != "stdin"}
        written = self._written(scratch / "sandbox" / "upper")
        for path, file in plan.credentials.items():
            if written.get(os.fsdecode(path)) == file.digest:  # it was put there, and not written
                del written[os.fsdecode(path)]
        return Observation(status, {**written, **streams})

    def _written(self, upper: Path) -> dict[str, str]:
        """The files that a sandbox wrote, by their paths inside."""
        digests: dict[str, str] = {}
        for directory, _, names in os.walk(upper):
            for name in names:
                path = Path(directory) / name
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    hashed = self._store.put_file(os.fsencode(path), keep=False, reread=True)
                    digests["/" + os.fspath(path.relative_to(upper))] = hashed.digest
                elif stat.S_ISLNK(status.st_mode):
                    digests["/" + os.fspath(path.relative_to(upper))] = f"link:{path.readlink()}"
        return digests


def _ends_within(pid: int, seconds: float) -> bool:
    """Whether the process ends by itself within this time."""
    handle = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([handle], [], [], seconds)
        return bool(ready)
    finally:
        os.close(handle)
