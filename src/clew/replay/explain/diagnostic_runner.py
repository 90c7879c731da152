"""Running a plan to see what comes of it, without recording it: for explaining differences.

An experiment runs in the same sandbox as a repetition, under the same tracer, with whatever is
to be pinned; what it wrote is looked at where the sandbox's changes lie, and then thrown away.
Neither the graph nor the store learn of it.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from clew.errors import ClewError
from clew.project_directory import Folder
from clew.prov.queries.execution_record import ExecutionRecord
from clew.redaction import Redactor
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.repeat_plan import RepeatPlan
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.bubblewrap import Sandbox, SandboxConfig
from clew.replay.sandbox.file_cache import FileCache
from clew.replay.stored_listings import listing_reader
from clew.run import execution_locks
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import Derivation, LaunchOptions
from clew.run.launch.pins import Pins
from clew.run.stdio.stdin_demand import StdinDemand
from clew.store import Store


@dataclass(frozen=True)
class Observation:
    """What came of an experiment."""

    status: int
    contents: Mapping[str, str]
    """The digests of the files it wrote, by path, and of `stdout` and `stderr`."""


class DiagnosticRunner:
    """Where experiments are made; use it in a `with`. After `seconds` it takes no more. `values`:
    the caller's secrets."""

    def __init__(self, folder: Folder, *, seconds: float, values: SecretValues) -> None:
        self._folder = folder
        self._values = values
        self._end = time.monotonic() + seconds

    def __enter__(self) -> DiagnosticRunner:
        self._place, self._lock = execution_locks.create_scratch(self._folder, secrets.token_hex(8))
        self._store = Store(self._folder.store)
        self._read_listing = listing_reader(self._store)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store.close()
        execution_locks.remove_tree(self._place)
        os.close(self._lock)

    def plan(self, record: ExecutionRecord) -> RepeatPlan | None:
        """How to run what is recorded; None where that cannot be done, or only with a credential
        file that has changed since."""
        try:
            plan = repeat_plan.make_plan(
                record, read_listing=self._read_listing, values=self._values, network=False
            )
        except ClewError:
            return None
        return plan if all(file.matches_record for file in plan.credentials.values()) else None

    def observe(self, plan: RepeatPlan, pins: Pins, *, seconds: float) -> Observation | None:
        """Run it; None when it could not be run, or took much longer than the `seconds` it took
        when it was recorded, or there is no time left."""
        longest = min(3 * seconds + 20, self._end - time.monotonic())
        if longest < seconds:
            return None
        place = self._place / secrets.token_hex(4)
        place.mkdir()
        try:
            return self._run(plan, pins, place, longest)
        except (ClewError, OSError):
            return None
        finally:
            execution_locks.remove_tree(place)

    def _run(self, plan: RepeatPlan, pins: Pins, place: Path, seconds: float) -> Observation | None:
        root = FileCache(self._folder.cache, self._store, roots=self._place / "roots").root(
            plan.initial_files
        )
        stdin = plan.stdin
        config = SandboxConfig(
            environ=plan.environ,
            cwd=Path(plan.cwd),
            machine=plan.machine,
            facets=dict(plan.facets),
            packages={},
            derivation=Derivation("repetition", parent="", collection=""),
            show=None,
            stdin=None if stdin is None else lambda: self._store.read(stdin),
            credentials=plan.credentials,
            devices=plan.devices,
        )
        sandbox = Sandbox(root, config, place / "sandbox", boot=secrets.token_hex(4))
        try:
            return self._watched(sandbox, plan, pins, place, seconds)
        finally:
            sandbox.close()

    def _watched(
        self, sandbox: Sandbox, plan: RepeatPlan, pins: Pins, place: Path, seconds: float
    ) -> Observation | None:
        kept = sandbox.prepare(
            place,
            redactor=Redactor({}, ()),
            limit=self._folder.stream_limit,
            demand=StdinDemand(),
        )
        nobody = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        tracer = sandbox.start(
            LaunchOptions(
                command=plan.command,
                trace=place / "trace",
                spool=None,
                notify=nobody,
                exclude=(),
                streams=kept,
                blocked=(),
                pins=pins,
            )
        )
        os.close(nobody)
        kept.started()
        in_time = False
        try:
            sandbox.ready()
            in_time = _ends_within(tracer, seconds)
        finally:
            if not in_time:
                os.kill(tracer, signal.SIGKILL)
            status = tracer_process.wait(tracer)
            kept.finish()
        if not in_time:
            return None
        streams = {name: keeper.digest for name, keeper in kept.kept.items() if name != "stdin"}
        written = self._written(place / "sandbox" / "upper")
        for path, file in plan.credentials.items():
            if written.get(os.fsdecode(path)) == file.digest:  # it was put there, and not written
                del written[os.fsdecode(path)]
        return Observation(status, {**written, **streams})

    def _written(self, upper: Path) -> dict[str, str]:
        """The files that a sandbox wrote, as it named them."""
        found: dict[str, str] = {}
        for folder, _, names in os.walk(upper):
            for name in names:
                path = Path(folder) / name
                status = path.lstat()
                if stat.S_ISREG(status.st_mode):
                    hashed = self._store.put_file(os.fsencode(path), keep=False, anew=True)
                    found["/" + os.fspath(path.relative_to(upper))] = hashed.digest
                elif stat.S_ISLNK(status.st_mode):
                    found["/" + os.fspath(path.relative_to(upper))] = f"link:{path.readlink()}"
        return found


def _ends_within(pid: int, seconds: float) -> bool:
    """Whether it ends by itself within this time."""
    handle = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([handle], [], [], seconds)
        return bool(ready)
    finally:
        os.close(handle)
