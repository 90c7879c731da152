"""Where a command runs: on this machine (`LocalHost`) or in a sandbox
(`clew.replay.sandbox.bubblewrap`).

A host knows how to start the command, how to read its files from outside, and its environment.
The recorder does the same on every host.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from clew.confined_files import HOST, Confined
from clew.documents.ids import Digest, Uid
from clew.errors import RecordingFailed
from clew.redaction import Redactor
from clew.run.launch import inherited_env, tracer_process
from clew.run.launch.pins import Pins
from clew.run.stdio import streams
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.stdio.streams import Streams
from clew.settings import Settings, machine_id
from clew.witness import environment, tracer_binary
from clew.witness.syscalls.trace_format import FileState

if TYPE_CHECKING:
    from clew.packages.owners import Packages


class Derivation(Struct, frozen=True):
    """What an execution was derived from: set for repeats and modifications."""

    kind: str
    """`repetition` or `modification`."""
    parent: Uid
    collection: Uid


class LaunchOptions(Struct, frozen=True):
    """The options with which the recorder lets the host start the tracer."""

    command: tuple[str, ...]
    trace: Path
    save_to: Path | None
    """Where the tracer saves files before they change."""
    notify: int
    exclude: tuple[str, ...]
    streams: Streams
    blocked: Iterable[int]
    """Signals that the caller had blocked."""
    pins: Pins
    ask: int | None = None
    """A socket to the `DecisionServer`, which knows what can be skipped."""
    prompt: bool = False
    """Flush the trace whenever a child of the command ends."""
    steps: bool = False
    """Record where a step of the command begins and ends."""


class ExecutionHost(Protocol):
    """The interface of a host for the recorder."""

    @property
    def machine(self) -> str:
        """The machine id in the locators of files."""

    @property
    def boot(self) -> str:
        """The start of the boot id: makes process ids unique."""

    @property
    def cwd(self) -> Path: ...

    @property
    def environ(self) -> Mapping[str, str]: ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values that are secret whatever their names: those given to a repeat."""

    @property
    def credential_files(self) -> Mapping[str, Iterable[str]]:
        """Credential files given to a repeat, by path, with the secret values in them. Their bytes
        are not stored."""

    @property
    def derivation(self) -> Derivation | None: ...

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        """The environment facets for the record, including `variables`."""

    def open_streams(
        self, directory: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
    ) -> Streams:
        """Before the start: the command's descriptors 0, 1 and 2. `directory` gets a copy of each
        stream, up to `limit` bytes."""

    def start(self, options: LaunchOptions) -> int:
        """Start the command; return the process id that ends when the tracer ends."""

    def signal_target(self, root: int | None) -> int | None:
        """The process that gets forwarded signals; `root` is the command in the trace."""

    def finish_start(self) -> tuple[Confined, Mapping[FileState, Digest]]:
        """Let the command go on; in a sandbox it waits for this call. Return access to its files,
        and the content of those that were put there for it."""

    def untraceable_error(self) -> RecordingFailed:
        """The error to report if the command never started."""

    def owners(self, paths: list[bytes]) -> Mapping[bytes, str]: ...

    def packages(self) -> dict[str, Any]: ...

    def close(self) -> None: ...


class LocalHost:
    """This machine, with the caller's variables, descriptors and working directory."""

    derivation: Derivation | None = None
    secrets: Mapping[str, str] = MappingProxyType({})
    credential_files: Mapping[str, Iterable[str]] = MappingProxyType({})

    def __init__(self, settings: Settings) -> None:
        self.machine = machine_id(settings)
        self.cwd = _current_directory()
        self.environ: Mapping[str, str] = inherited_env.restore_caller_environment()
        self.boot = ""
        self._settings = settings

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        facets = environment.facets(self.cwd, self.environ, redactor, machine=self.machine)
        self.boot = str(facets.get("boot", ""))[:8]
        git = environment.describe_git(self.cwd, self.environ)
        return {**facets, "git": git, "streams": streams.describe_streams()}

    def open_streams(
        self, directory: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
    ) -> Streams:
        return streams.capture_streams(directory, redactor=redactor, limit=limit, demand=demand)

    def start(self, options: LaunchOptions) -> int:
        # `options.ask` is never set: only repeats, which run in a sandbox, skip programs.
        terminal = options.streams.terminal
        tracer = tracer_binary.tracer_command(
            options.command,
            tracer=os.fspath(tracer_binary.TRACER),
            library=os.fspath(tracer_binary.LIBRARY),
            trace=os.fspath(options.trace),
            save_to=os.fspath(options.save_to) if options.save_to else None,
            notify=options.notify,
            exclude=options.exclude,
            starter=os.getpid(),
            session=terminal is not None and terminal.both_ways,
            output_position=options.streams.output_position.descriptor,
            pin_clock=options.pins.clock,
            pin_random=options.pins.random,
            serial=options.pins.serial,
            prompt=options.prompt,
            steps=options.steps,
        )
        return tracer_process.start(
            tracer,
            self.environ,
            descriptors=options.streams.descriptors,
            handed=(options.notify, *options.streams.output_position.handed),
            blocked=options.blocked,
        )

    def signal_target(self, root: int | None) -> int | None:
        return root

    def finish_start(self) -> tuple[Confined, Mapping[FileState, Digest]]:
        return HOST, {}

    def untraceable_error(self) -> RecordingFailed:
        return RecordingFailed("the command could not be traced", hint="is ptrace allowed here?")

    @cached_property
    def _packages(self) -> Packages:
        from clew.packages.owners import Packages  # late: the recorder asks after the start

        return Packages(self._settings.owners)

    @property
    def owners(self) -> Callable[[list[bytes]], Mapping[bytes, str]]:
        return self._packages.owners

    def packages(self) -> dict[str, Any]:
        return self._packages.facet()

    def close(self) -> None:
        pass


def _current_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise RecordingFailed(
            "the working directory no longer exists", hint="cd to a directory that exists"
        ) from error
