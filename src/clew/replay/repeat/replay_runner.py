"""Run a repeat plan in a sandbox and record it.

The repeat is an execution like any other, with a parent and a kind. If it is killed, all of it is
removed: its files were only in its sandbox.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from clew.documents.ids import Uid
from clew.errors import ClewError, NotAllowed
from clew.project_directory import ProjectDirectory
from clew.replay.repeat.repeat_plan import RepeatPlan
from clew.replay.sandbox.bubblewrap import Sandbox, SandboxConfig, require_sandbox
from clew.replay.sandbox.file_cache import FileCache, hold_cache
from clew.replay.sandbox.initial_files import Entry
from clew.run import recovery
from clew.run.launch.execution_host import Derivation
from clew.run.launch.pins import Pins
from clew.run.launch.skip_protocol import Decider
from clew.run.recorder import CommandRecorder
from clew.run.recording_result import RecordingResult
from clew.run.spool_directories import hold_scratch
from clew.settings import Settings
from clew.store import Store
from clew.witness.environment import find_user_name


def _require_architecture(plan: RepeatPlan) -> None:
    """Raise an error if the recorded programs are for another architecture: none could start."""
    recorded, here = plan.facets.get("cpu", {}).get("architecture"), os.uname().machine
    if recorded in ("x86_64", "aarch64") and recorded != here:
        raise ClewError(
            f"it was recorded on {recorded}: its programs cannot run here ({here})",
            hint=f"repeat it on a machine with {recorded}",
        )


@dataclass(frozen=True)
class ReplayRunner:
    """Runs the repeats of one project."""

    directory: ProjectDirectory
    settings: Settings

    def run(
        self,
        plan: RepeatPlan,
        derivation: Derivation,
        *,
        network: bool = False,
        show: tuple[int, int] | None = (1, 2),
        name: str | None = None,
        pins: Pins | None = None,
        decider: Decider | None = None,
        uid: Uid | None = None,
    ) -> RecordingResult:
        """Carry out a plan in a sandbox, and record it as what `derivation` says: whole, or not.

        By default, what was pinned is pinned again. `uid`: of the new execution.
        """
        require_sandbox()
        _require_architecture(plan)
        self._check_owner()
        try:
            return self._run(plan, derivation, network, show, name, pins, decider, uid)
        except ClewError:
            # on a full disk there may be room again to forget it, now that its files are gone
            recovery.recover(self.directory, self.settings)
            raise

    def _run(
        self,
        plan: RepeatPlan,
        derivation: Derivation,
        network: bool,
        show: tuple[int, int] | None,
        name: str | None,
        pins: Pins | None,
        decider: Decider | None,
        uid: Uid | None,
    ) -> RecordingResult:
        with (
            Store(self.directory.store) as store,
            hold_cache(self.directory.cache),
            hold_scratch(self.directory) as scratch,
        ):
            plan = _restore_appended_files(plan, store)
            root = FileCache(self.directory.cache, store).root(plan.initial_files)
            stdin = plan.stdin
            config = SandboxConfig(
                environ=plan.environ,
                cwd=Path(plan.cwd),
                machine=plan.machine,
                facets=dict(plan.facets),
                packages=plan.packages,
                derivation=derivation,
                show=show,
                stdin=None if stdin is None else lambda: store.read(stdin),
                secrets=plan.secrets,
                credentials=plan.credentials,
                network=network,
                devices=plan.devices,
            )
            sandbox = Sandbox(root, config, scratch / "sandbox", boot=secrets.token_hex(4))
            return CommandRecorder(
                self.directory,
                self.settings,
                plan.command,
                host=sandbox,
                name=name,
                exclude=(),
                pins=Pins.recorded(plan.facets) if pins is None else pins,
                decider=decider,
                uid=uid,
            ).record()

    def _check_owner(self) -> None:
        """Only the project's owner can repeat: in a user namespace the files of other users have no
        owner."""
        owner = self.directory.path.stat().st_uid
        if owner != os.geteuid():
            name = find_user_name(owner)
            raise NotAllowed(
                f"{self.directory.path} belongs to {name}, and only {name} can repeat there",
                hint=f"run this as {name}, or pull the execution into a project of your own",
            )


def _restore_appended_files(plan: RepeatPlan, store: Store) -> RepeatPlan:
    """Add the earlier content of files that the output was appended to."""
    entries: dict[bytes, Entry | None] = {}
    for path, (digest, size) in plan.appended.items():
        begin = b""
        for data in store.read(digest):
            begin += data[: size - len(begin)]
            if len(begin) == size:
                break
        entries[path] = Entry("file", 0o644, 0, len(begin), store.put_bytes(begin).digest)
    return plan.with_files(entries) if entries else plan
