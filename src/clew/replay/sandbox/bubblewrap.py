"""Run a command in a sandbox: bubblewrap over an overlay of cached files.

`unshare` makes a user namespace in which an unprivileged user can mount an overlay. `clew-sandbox`
mounts it and makes all processes end together; bubblewrap makes the overlay the root of the
sandbox, without capabilities, network or terminal. The tracer runs inside, so that it sees what the
command sees, and protects itself from the command. Of the host only `SandboxConfig.devices` are
bound: the tracer, its library and its files are descriptors on mounts of their own. The host reads
the sandbox's files through one descriptor of its root, which outlives the sandbox.
"""

import contextlib
import os
import select
import shutil
import signal
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.confined_files import Confined
from clew.documents.ids import Digest
from clew.errors import ClewError, RecordingFailed
from clew.redaction import Redactor
from clew.replay.repeat.credential_files import CredentialFile, write_credential_files
from clew.replay.sandbox.file_cache import Root
from clew.run.launch import tracer_process
from clew.run.launch.execution_host import Derivation, LaunchOptions
from clew.run.stdio import streams
from clew.run.stdio.stdin_demand import StdinDemand
from clew.run.stdio.streams import Streams
from clew.witness import environment, tracer_binary
from clew.witness.syscalls.trace_format import FileState

_HOST_PROC_ENTRIES = (
    *("acpi", "asound", "bus", "driver", "dynamic_debug", "fs", "irq", "mtrr", "pressure", "scsi"),
    *("latency_stats", "sys", "sysrq-trigger"),
)
"""Parts of /proc that belong to the machine. The kernel lets its root user write there, even
without capabilities in a namespace: `/proc/sys/kernel/core_pattern` names a program to run."""
_HOST_FACETS = ("kernel", "cpu", "memory", "hostname", "boot", "gpu", "driver", "cuda", "cudnn")
"""Facets that come from the machine the sandbox runs on; all others come from the record."""

_EXIT_TIMEOUT_MS = 5_000
"""Milliseconds to wait for the sandbox to end."""


@dataclass
class SandboxConfig:
    """The settings of a sandbox, except its files."""

    environ: Mapping[str, str]
    cwd: Path
    machine: str
    facets: dict[str, Any]
    """The facets of the repeated execution."""
    packages: Mapping[bytes, str]
    """The package that owns each file, by path."""
    derivation: Derivation
    show: tuple[int, int] | None = (1, 2)
    """Descriptors that stdout and stderr are copied to; None only stores them."""
    stdin: Callable[[], Iterable[bytes]] | None = None
    """Reads the recorded standard input, if it was stored."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Secret variables that the caller gave to the command."""
    credentials: Mapping[bytes, CredentialFile] = field(default_factory=dict)
    """Credential files that the caller gave to the command."""
    network: bool = False
    devices: tuple[str, ...] = ()
    """Device nodes and directories of /sys that the command may use; no others exist."""


@dataclass
class Sandbox:
    """Runs a command in a sandbox: an `ExecutionHost` (`clew.run.launch.execution_host`)."""

    root: Root
    config: SandboxConfig
    scratch: Path
    """An empty directory of its own that takes the changes."""
    boot: str
    _pid: int = 0
    _init_pid: int = 0
    _init_pidfd: int = -1
    _root_fd: int = -1
    _status_fd: int = -1
    _go_fd: int = -1
    _inherited_fds: list[int] = field(default_factory=list)
    _mounts: dict[int, tuple[str, Path]] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        return self.config.machine

    @property
    def cwd(self) -> Path:
        return self.config.cwd

    @property
    def environ(self) -> Mapping[str, str]:
        return self.config.environ

    @property
    def secrets(self) -> Mapping[str, str]:
        return self.config.secrets

    @property
    def credential_files(self) -> Mapping[str, Iterable[str]]:
        return {os.fsdecode(p): file.secrets for p, file in self.config.credentials.items()}

    @property
    def derivation(self) -> Derivation | None:
        return self.config.derivation

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        here = environment.facets(self.cwd, self.environ, redactor, machine=self.machine)
        kept = {n: v for n, v in self.config.facets.items() if n not in _HOST_FACETS}
        return {
            **kept,
            **{name: here[name] for name in _HOST_FACETS if name in here},
            "variables": here.get("variables", {}),
            "redacted": here.get("redacted", []),
            "network": self.config.network,
        }

    def open_streams(
        self, directory: Path, *, redactor: Redactor, limit: int, demand: StdinDemand
    ) -> Streams:
        words: dict[str, Any] = self.config.facets.get("streams", {})
        self._streams = streams.recreate_streams(
            directory,
            words,
            redactor=redactor,
            limit=limit,
            stdin=self.config.stdin,
            show=self.config.show,
        )
        return self._streams

    # -- starting

    def start(self, options: LaunchOptions) -> int:
        for name in ("upper", "work", "root"):
            (self.scratch / name).mkdir(parents=True)
        (self.scratch / "lower").symlink_to(self.root.path)
        write_credential_files(self.config.credentials, self.scratch / "upper", self.root.path)
        status_read, status_write = os.pipe()
        wait, go = os.pipe()
        tracer = self._tracer_command(options)
        kept = [options.notify, *options.streams.output_position.handed, *self._inherited_fds]
        kept += [] if options.ask is None else [options.ask]
        self._pid = tracer_process.start(
            [
                *self._launcher_command(status_write, wait, kept),
                *self._bubblewrap_command(),
                *tracer,
            ],
            {"PATH": os.environ.get("PATH", os.defpath)},
            descriptors=options.streams.descriptors,
            handed=(status_write, wait, *kept, *self._mounts),
            blocked=options.blocked,
        )
        for descriptor in (status_write, wait, *self._inherited_fds, *self._mounts):
            os.close(descriptor)
        self._inherited_fds.clear()
        self._status_fd, self._go_fd = status_read, go
        return self._pid

    def _launcher_command(self, status_write: int, wait: int, kept: Iterable[int]) -> list[str]:
        words = [_find_program("unshare"), "-Urm", os.fspath(tracer_binary.SANDBOX)]
        words += ["--starter", str(os.getpid()), "--tell", str(status_write), "--go", str(wait)]
        words += ["--folder", os.fspath(self.scratch)]
        words += ["--umask", str(self.config.facets.get("umask") or "0022")]
        for descriptor in kept:
            words += ["--keep", str(descriptor)]
        for descriptor, (how, path) in self._mounts.items():
            words += [how, f"{descriptor}={os.fspath(path)}"]
        return [*words, "--"]

    def _bubblewrap_command(self) -> list[str]:
        user = self.config.facets.get("user", {})
        program = _find_program("bwrap")
        words = [program, "--bind", os.fspath(self.scratch / "root"), "/"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        for name in _HOST_PROC_ENTRIES:
            words += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
        words += _device_options(self.config.devices)
        words += ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        words += [] if self.config.network else ["--unshare-net"]
        words += ["--disable-userns"] if _disables_user_namespaces(program) else []
        words += ["--cap-drop", "ALL", "--new-session", "--die-with-parent"]
        words += ["--uid", str(user.get("uid", 0)), "--gid", str(user.get("gid", 0))]
        words += ["--hostname", str(self.config.facets.get("hostname") or "localhost")]
        return [*words, "--chdir", os.fspath(self.cwd), "--"]

    def _tracer_command(self, options: LaunchOptions) -> list[str]:
        library = tracer_binary.LIBRARY
        return tracer_binary.tracer_command(
            options.command,
            tracer=self._mount("--read-only", tracer_binary.TRACER),
            library=self._mount("--read-only", library) if library.exists() else None,
            trace=self._inherit(
                os.open(options.trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            ),
            save_to=self._mount("--tree", options.save_to) if options.save_to else None,
            notify=options.notify,
            exclude=options.exclude,
            environment=self._inherit(_write_environment(self.environ)),
            opened=options.streams.opened,
            output_position=options.streams.output_position.descriptor,
            ask=options.ask,
            pin_clock=options.pins.clock,
            pin_random=options.pins.random,
            serial=options.pins.serial,
            isolated=True,
        )

    def _inherit(self, descriptor: int) -> str:
        self._inherited_fds.append(descriptor)
        return f"/proc/self/fd/{descriptor}"

    def _mount(self, how: str, path: Path) -> str:
        """Open a descriptor that `clew-sandbox` replaces by one of the same path on its own
        mount."""
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        self._mounts[descriptor] = how, path
        return f"/proc/self/fd/{descriptor}"

    def finish_start(self) -> tuple[Confined, Mapping[FileState, Digest]]:
        """Wait until the overlay is mounted, open its root, and let the command start."""
        try:
            with open(self._status_fd, "rb", closefd=False) as status_file:
                self._init_pid = int(status_file.readline())
            self._init_pidfd = os.pidfd_open(self._init_pid)
            root = f"/proc/{self._pid}/root{self.scratch / 'root'}"
            self._root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            os.write(self._go_fd, b"x")
        except (OSError, ValueError) as error:  # it failed, or was killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            tracer_process.wait(self._pid)
            self._streams.finish()
            raise self.untraceable_error() from error
        return Confined(self._root_fd), self.root.states

    def untraceable_error(self) -> RecordingFailed:
        """Why the sandbox could not be created, as the failed program reported it."""
        kept = self._streams.kept.get("stderr")
        message = kept.path.read_text(errors="replace").strip() if kept else ""
        why = f": {message.splitlines()[-1]}" if message else ""
        return RecordingFailed(
            f"the sandbox could not be created{why}",
            hint="are user namespaces and overlays allowed here? see docs/reference/isolation.md",
        )

    def signal_target(self, root: int | None) -> int | None:
        """Any signal ends the whole sandbox."""
        return self._init_pid or None

    # -- the end

    def owners(self, paths: list[bytes]) -> Mapping[bytes, str]:
        return {p: self.config.packages[p] for p in paths if p in self.config.packages}

    def packages(self) -> dict[str, Any]:
        packages: dict[str, Any] = self.config.facets.get("packages", {})
        return packages

    def close(self) -> None:
        """End all processes of the sandbox, so that removing its files frees their space."""
        if self._init_pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)
            ended = select.poll()
            ended.register(self._init_pidfd, select.POLLIN)
            ended.poll(_EXIT_TIMEOUT_MS)
        for descriptor in (self._status_fd, self._go_fd, self._root_fd, self._init_pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._status_fd = self._go_fd = self._root_fd = self._init_pidfd = -1


def require_sandbox() -> None:
    """Raise an error if a program that sandboxes need is missing; call before any other work."""
    if not os.access(tracer_binary.SANDBOX, os.X_OK):
        raise RecordingFailed(
            f"{tracer_binary.SANDBOX} is missing: repeating needs it",
            hint="install Clew again; in a clone of its repository, run make",
        )
    for name in ("bwrap", "unshare"):
        _find_program(name)


def _find_program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        package = {"bwrap": "bubblewrap", "unshare": "util-linux"}[name]
        raise ClewError(
            f"{name} is missing: repeating needs it",
            hint=f"install it (Debian: apt-get install {package})",
        )
    return path


def _disables_user_namespaces(program: str) -> bool:
    """Whether this bubblewrap has `--disable-userns` (0.8 and newer). Searching the binary saves
    starting it."""
    return b"--disable-userns" in Path(program).read_bytes()


def _device_options(paths: Iterable[str]) -> list[str]:
    """Bind /sys read-only, and of /dev only device nodes."""
    words: list[str] = []
    system = [path for path in paths if path.startswith("/sys")]
    if system and "/sys" not in system:
        words += ["--tmpfs", "/sys"]
    for path in system:
        words += ["--ro-bind-try", path, path]
    if system and "/sys" not in system:
        words += ["--remount-ro", "/sys"]
    for path in paths:
        if path not in system and _is_device(path):
            words += ["--dev-bind", path, path]
    return words


def _is_device(path: str) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISCHR(os.lstat(path).st_mode)
    return False


def _write_environment(environ: Mapping[str, str]) -> int:
    """Write the variables to an anonymous file, each terminated by a zero byte."""
    descriptor = os.memfd_create("environment", os.MFD_CLOEXEC)
    entries = (os.fsencode(f"{name}={value}") for name, value in environ.items())
    os.write(descriptor, b"".join(entry + b"\0" for entry in entries))
    return descriptor
