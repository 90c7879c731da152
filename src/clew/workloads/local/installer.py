"""Find JupyterLab and TensorBoard on this machine, and install them.

They are looked for in the server's own environment, in the one that was made here
(`.clew/programs`), and beside the programs on the PATH. They are installed into the server's
environment if that is a virtual one with pip that may be written, else into `.clew/programs`, which
also sees the packages of the server's environment: notebooks can import what the user installed.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import site
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.documents.workloads.workload import Program, ProgramInstallation
from clew.errors import NotFound
from clew.settings import remove_own_variables
from clew.workloads.local.processes.child_process import RUN_CHILD

PROGRAMS = {"jupyterlab": ("jupyterlab", "ipykernel"), "tensorboard": ("tensorboard",)}
"""The packages that each program consists of."""
_COMMANDS = {
    "jupyterlab": "jupyter-lab",
    "jupyter-server": "jupyter-server",
    "tensorboard": "tensorboard",
}
_MAX_OUTPUT = 64 << 10
_LINES = 6
"""Lines of the output that explain a failure."""
_CACHE_SECONDS = 5.0
_PROBE = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
_PROBE_SECONDS = 20


class Interpreters:
    """The Python interpreters that have a package."""

    def __init__(self, programs: Path) -> None:
        """`programs`: the directory of the environment that is made here."""
        self._own = programs / "bin" / "python"
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, tuple[str, str] | None]] = {}

    def find(self, package: str) -> str | None:
        """The interpreter that has the package."""
        found = self._look_up(package)
        return found and found[0]

    def version(self, package: str) -> str | None:
        found = self._look_up(package)
        return found and found[1]

    def forget(self) -> None:
        """Look again: something was installed."""
        with self._lock:
            self._found.clear()
        importlib.invalidate_caches()

    def _look_up(self, package: str) -> tuple[str, str] | None:
        """The interpreter and the version of the package; looked up again after some seconds."""
        with self._lock:
            before = self._found.get(package)
            if before is None or time.monotonic() - before[0] > _CACHE_SECONDS:
                before = (time.monotonic(), self._search(package))
                self._found[package] = before
            return before[1]

    def _search(self, package: str) -> tuple[str, str] | None:
        try:
            return sys.executable, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
        command = shutil.which(_COMMANDS[package])
        beside = Path(command).resolve().parent / "python" if command else None
        for python in (self._own, beside):
            if python is not None and python.exists() and (found := _probe(python, package)):
                return str(python), found
        return None


def _probe(python: Path, package: str) -> str | None:
    """The version of a package that another interpreter has."""
    try:
        ran = subprocess.run(
            [python, "-I", "-c", _PROBE, package],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout.strip() or None


class Installer:
    """Installs programs, one at a time. Satisfies `workloads.programs.Programs`."""

    def __init__(
        self, programs: Path, interpreters: Interpreters, *, on_change: Callable[[], None]
    ) -> None:
        """`on_change`: called when an installation begins, prints, or ends."""
        self._directory = programs
        self._interpreters = interpreters
        self._on_change = on_change
        self._lock = threading.Lock()
        self._output: dict[str, str] = {}
        self._error: dict[str, str] = {}
        self._active: set[str] = set()
        """Programs that are being installed, or wait for their turn."""
        self._turn = threading.Lock()
        self._closing = False
        self._process: subprocess.Popen[str] | None = None

    def list(self) -> Sequence[Program]:
        return [
            Program(
                name=name,
                installed=self._interpreters.find(name) is not None,
                version=self._interpreters.version(name),
                can_install=True,
            )
            for name in PROGRAMS
        ]

    def get(self, name: str) -> ProgramInstallation:
        if name not in PROGRAMS:
            raise NotFound(
                f"there is no program {name[:100]}", hint=f"one of {', '.join(PROGRAMS)}"
            )
        with self._lock:
            output, error = self._output.get(name, ""), self._error.get(name)
            running = name in self._active
        if running:
            state = "installing"
        elif self._interpreters.find(name):
            state, error = "installed", None
        else:
            state = "failed" if error else "missing"
        return ProgramInstallation(name=name, state=state, output=output, error=error)

    def install(self, name: str) -> ProgramInstallation:
        current = self.get(name)
        if current.state in ("installed", "installing"):
            return current
        with self._lock:
            if name not in self._active:
                self._active.add(name)
                self._output[name] = ""
                self._error.pop(name, None)
                threading.Thread(
                    target=self._run, args=(name,), name="install", daemon=True
                ).start()
        return self.get(name)

    def close(self) -> None:
        """End an installation that is running, and begin no other."""
        self._closing = True
        process = self._process
        if process is not None and process.poll() is None:
            process.terminate()

    def _run(self, name: str) -> None:
        error = None
        with self._turn:
            try:
                error = self._install(name)
            except OSError as failure:
                error = f"the installation cannot be started: {failure.strerror}"
        self._interpreters.forget()
        with self._lock:
            self._active.discard(name)
            if error:
                self._error[name] = error
        self._on_change()

    def _install(self, name: str) -> str | None:
        """Why it failed; None if it did not."""
        for command in install_commands(self._directory, PROGRAMS[name]):
            if self._closing:
                return "the server ended"
            if status := self._execute(name, command):
                return explain(self._output[name], status)
            if command[2:4] == ["-m", "venv"]:
                share_packages(self._directory)
        return None

    def _execute(self, name: str, command: Sequence[str]) -> int:
        self._append(name, f"$ {' '.join(command)}\n")
        with subprocess.Popen(
            [sys.executable, "-I", "-S", str(RUN_CHILD), str(os.getpid()), *command],
            env=remove_own_variables(),
            start_new_session=True,  # Ctrl-C is for the server, which ends it
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            self._process = process
            if self._closing:  # `close` did not see it
                process.terminate()
            assert process.stdout is not None
            for line in process.stdout:
                self._append(name, line)
        return process.returncode

    def _append(self, name: str, text: str) -> None:
        with self._lock:
            self._output[name] = (self._output[name] + text)[-_MAX_OUTPUT:]
        self._on_change()


def install_commands(programs: Path, packages: Sequence[str]) -> list[list[str]]:
    # -P: nothing is imported from the working directory, which is the project.
    options = ["-P", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    if _has_writable_environment():
        return [[sys.executable, *options, *packages]]
    python = programs / "bin" / "python"
    install = [str(python), *options, *packages]
    if python.exists() and (programs / "bin" / "pip").exists():
        return [install]
    # `--clear`: an environment without pip was left by an installation that failed.
    return [
        [sys.executable, "-P", "-m", "venv", "--clear", "--system-site-packages", str(programs)],
        install,
    ]


def share_packages(programs: Path) -> None:
    """Let the new environment see the packages of the server's own. `--system-site-packages` shows
    it only those of the interpreter that the server's environment was made with."""
    if sys.prefix == sys.base_prefix:
        return
    own = [path for path in site.getsitepackages() if Path(path).is_dir()]
    for directory in programs.glob("lib/python*/site-packages"):
        (directory / "clew-server.pth").write_text("".join(f"{path}\n" for path in own))


def _has_writable_environment() -> bool:
    """Whether the server runs in a virtual environment that pip may change."""
    is_virtual = sys.prefix != sys.base_prefix
    has_pip = importlib.util.find_spec("pip") is not None
    return is_virtual and has_pip and os.access(sys.prefix, os.W_OK)


def explain(output: str, status: int) -> str:
    """The last error that pip printed, or the last lines of what was printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    printed = [line for line in lines if not line.startswith("$ ")]
    said = errors[-1] if errors else " ".join(printed[-_LINES:])
    return f"the installation failed with status {status}" + (f": {said}" if said else "")
