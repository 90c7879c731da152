"""Virtual environments with the packages that components want installed.

There is one for each distinct set: the packages, the options that pip is given, and the Python.
It is built once for this user, sees all that the Python itself has, and serves every task of
every run. Who builds it holds a lock, and so does the pip that he started: so two builders do
not meet, and what a killed one left is built anew.
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

Installs = tuple[tuple[str, ...], ...]

_MARKER = "clew-built.json"
"""Written last: what lacks it is not finished."""
_DESCRIBE = """
import json, site, sys
places = site.getsitepackages()
if site.ENABLE_USER_SITE:
    places.append(site.getusersitepackages())
print(json.dumps([sys.version, sys.prefix, places]))
"""
_PTH = "import site; any(map(site.addsitedir, {places!r}))\n"


class InstallFailed(Exception):
    """What a component wants installed cannot be."""


class Venv(Struct, frozen=True):
    directory: Path
    about: tuple[str, ...]
    """The Python it is made of: its version, its place, and where its packages are."""
    installs: Installs

    @property
    def python(self) -> str:
        return os.fspath(self.directory / "bin" / "python")

    def built(self) -> bool:
        return (self.directory / _MARKER).exists()

    def variables(self, path: str) -> dict[str, str]:
        """What activating it sets."""
        return {
            "VIRTUAL_ENV": os.fspath(self.directory),
            "PATH": f"{self.directory / 'bin'}:{path}",
        }


class Venvs:
    """Those of one Python."""

    def __init__(self, cache: Path, python: str, say: Callable[[str], None]) -> None:
        self._home = cache / "venvs"
        self._python = python
        self._say = say
        self._about: tuple[str, ...] | None = None

    def of(self, installs: Installs) -> Venv:
        if self._about is None:
            said = subprocess.run(
                [self._python, "-c", _DESCRIBE], check=True, capture_output=True, text=True
            )
            version, prefix, places = json.loads(said.stdout)
            self._about = (version, prefix, *places)
        told = json.dumps([self._about, installs])
        return Venv(self._home / blake3(told.encode()).hexdigest(length=12), self._about, installs)

    def building(self, venv: Venv) -> VenvBuilder:
        return VenvBuilder(venv, self._python, self._say)


class VenvBuilder:
    """One that is wanted; `run` and `stop` may be called from different threads."""

    def __init__(self, venv: Venv, python: str, say: Callable[[str], None]) -> None:
        self.venv = venv
        self._python = python
        self._say = say
        self._stopped = False
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # of the process

    def run(self) -> None:
        """Until it is there, whoever builds it; NotInstalled if it cannot be."""
        venv = self.venv
        venv.directory.parent.mkdir(parents=True, exist_ok=True)
        with self._held(venv.directory.with_suffix(".lock")) as lock:
            if venv.built():
                return
            shutil.rmtree(venv.directory, ignore_errors=True)
            self._say(f"installing {_describe(venv.installs)} in {venv.directory}")
            self._call([self._python, "-m", "venv", "--without-pip", venv.directory], lock)
            [packages] = (venv.directory / "lib").glob("python*/site-packages")
            (packages / "clew.pth").write_text(_PTH.format(places=list(venv.about[2:])))
            if self._call([venv.python, "-c", "import pip"], lock, must=False):
                self._call([venv.python, "-m", "ensurepip"], lock)
            for words in venv.installs:
                pip = [venv.python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
                self._call([*pip, "install", *words], lock)
            draft = venv.directory / f"{_MARKER}.part"
            draft.write_text(json.dumps({"python": venv.about, "installs": venv.installs}))
            draft.rename(venv.directory / _MARKER)

    def stop(self, number: int) -> None:
        """Build, or wait, no more."""
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

    def _call(self, words: Sequence[str | Path], lock: int, *, must: bool = True) -> int:
        with self._lock:
            if self._stopped:
                raise InstallFailed("it was stopped before its packages were installed")
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=(lock,),
                process_group=0,
            )
            self._process = process
        said, _ = process.communicate()
        with self._lock:
            self._process = None
        if process.returncode and must:
            raise InstallFailed(f"its packages cannot be installed: {_last_line(said)}")
        return process.returncode


def _last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("hint:", "note:", "[notice]"))]
    return lines[-1][:300] if lines else "pip ended without a word"


def _describe(installs: Installs) -> str:
    return ", ".join(word for words in installs for word in list_packages(words))


def list_packages(words: Sequence[str]) -> list[str]:
    """Of what pip is given, what is no option, nor the value of one."""
    found, value = [], False
    for word in words:
        if value:
            value = False
        elif word in ("--index-url", "--extra-index-url", "--trusted-host"):
            value = True
        elif not word.startswith("-"):
            found.append(word)
    return found
