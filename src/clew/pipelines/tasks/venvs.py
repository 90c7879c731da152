"""Virtual environments with the packages that components request.

There is one for each distinct set: the packages, the options that pip is given, and the Python.
It is built once for this user, also sees the packages of the Python itself, and serves every task
of every run. A builder and its pip hold a lock, so that two builders do not interfere; what a
killed builder left is built again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from blake3 import blake3
from msgspec import Struct

from clew.pipelines.spec.executors import list_packages

Installs = tuple[tuple[str, ...], ...]

_MARKER = "clew-built.json"
"""Written last: an environment without it is incomplete."""
_DESCRIBE = """
import json, site, sys
places = site.getsitepackages()
if site.ENABLE_USER_SITE:
    places.append(site.getusersitepackages())
print(json.dumps([sys.version, sys.prefix, places]))
"""
_PTH = "import site; any(map(site.addsitedir, {places!r}))\n"


class InstallFailed(Exception):
    """The packages of a component cannot be installed."""


class Venv(Struct, frozen=True):
    directory: Path
    python_info: tuple[str, ...]
    """The base Python: its version, its prefix, and its package directories."""
    installs: Installs

    @property
    def python(self) -> str:
        return os.fspath(self.directory / "bin" / "python")

    def is_built(self) -> bool:
        return (self.directory / _MARKER).exists()

    def variables(self, path: str) -> dict[str, str]:
        """The variables that activating it sets."""
        return {
            "VIRTUAL_ENV": os.fspath(self.directory),
            "PATH": f"{self.directory / 'bin'}:{path}",
        }


class Venvs:
    """The environments of one Python."""

    def __init__(self, cache: Path, python: str, say: Callable[[str], None]) -> None:
        self._home = cache / "venvs"
        self._python = python
        self._say = say
        self._python_info: tuple[str, ...] | None = None

    def venv_for(self, installs: Installs) -> Venv:
        if self._python_info is None:
            output = subprocess.run(
                [self._python, "-c", _DESCRIBE], check=True, capture_output=True, text=True
            )
            version, prefix, places = json.loads(output.stdout)
            self._python_info = (version, prefix, *places)
        key = json.dumps([self._python_info, installs])
        return Venv(
            self._home / blake3(key.encode()).hexdigest(length=12), self._python_info, installs
        )

    def builder_for(self, venv: Venv) -> VenvBuilder:
        return VenvBuilder(venv, self._python, self._say)


class VenvBuilder:
    """Builds one environment. `run` and `stop` may be called from different threads."""

    def __init__(self, venv: Venv, python: str, say: Callable[[str], None]) -> None:
        self.venv = venv
        self._python = python
        self._say = say
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # of the process

    def run(self) -> None:
        """Build the environment, or wait until another process has built it."""
        venv = self.venv
        venv.directory.parent.mkdir(parents=True, exist_ok=True)
        with self._held(venv.directory.with_suffix(".lock")) as lock:
            if venv.is_built():
                return
            shutil.rmtree(venv.directory, ignore_errors=True)
            names = [name for arguments in venv.installs for name in list_packages(arguments)]
            self._say(f"installing {', '.join(names)} in {venv.directory}")
            self._call([self._python, "-m", "venv", "--without-pip", venv.directory], lock)
            [packages] = (venv.directory / "lib").glob("python*/site-packages")
            (packages / "clew.pth").write_text(_PTH.format(places=list(venv.python_info[2:])))
            if self._call([venv.python, "-c", "import pip"], lock, check=False):
                self._call([venv.python, "-m", "ensurepip"], lock)
            for arguments in venv.installs:
                pip = [venv.python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
                self._call([*pip, "install", *arguments], lock)
            draft = venv.directory / f"{_MARKER}.part"
            draft.write_text(json.dumps({"python": venv.python_info, "installs": venv.installs}))
            draft.rename(venv.directory / _MARKER)

    def stop(self, number: int) -> None:
        """Stop building or waiting."""
        self._stopped = True
        with self._lock:
            if self._process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)

    @contextmanager
    def _held(self, path: Path) -> Iterator[int]:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not self._stopped:
                with suppress(BlockingIOError):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.05)
            yield lock
        finally:
            os.close(lock)

    def _call(self, command: Sequence[str | Path], lock: int, *, check: bool = True) -> int:
        with self._lock:
            if self._stopped:
                raise InstallFailed("it was stopped before its packages were installed")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=(lock,),
                process_group=0,
            )
            self._process = process
        output, _ = process.communicate()
        with self._lock:
            self._process = None
        if process.returncode and check:
            raise InstallFailed(f"its packages cannot be installed: {_last_line(output)}")
        return process.returncode


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("hint:", "note:", "[notice]"))]
    return lines[-1][:300] if lines else "pip printed nothing"
