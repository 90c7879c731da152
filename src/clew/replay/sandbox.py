"""A place that holds exactly what was recorded: bubblewrap over an overlay of cached files.

`unshare` makes a name space in which an overlay can be mounted by anybody, bubblewrap makes it the
root of a sandbox with its own processes and no network, and the tracer runs inside, so that it
sees what the command sees. Nothing of the host is bound in: the tracer, its library, its files
and the command's variables come as descriptors that the command never has. From outside the
sandbox's files are read through one descriptor of its root, which outlives the sandbox.
"""

from __future__ import annotations

import json
import os
import select
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.errors import ClewError, RecordingFailed
from clew.redaction import Redactor
from clew.replay.cache import Root
from clew.run import starting, streams
from clew.run.interest import Interest
from clew.run.stages import Descent, Start
from clew.run.streams import Streams
from clew.witness import environment, native
from clew.witness.contents import State

_SCRIPT = """\
cd "$1" || exit 125
layers=lowerdir=lower,upperdir=upper,workdir=work
mount -t overlay overlay -o $layers,userxattr,volatile root || exit 125
umask "$2"
shift 2
exec "$@"
"""
"""`volatile`: what is written need not reach the disk. It is stored elsewhere, or thrown away."""
_HARDWARE = ("kernel", "cpu", "memory", "hostname", "boot", "gpu", "driver", "cuda", "cudnn")
"""Facets that a sandbox has from the machine it runs on; all others are the record's."""

_PATIENCE = 5_000
"""Milliseconds to wait for a sandbox that is about to end."""


@dataclass
class Inside:
    """What the command finds in the sandbox, beside its files."""

    environ: Mapping[str, str]
    cwd: Path
    machine: str
    facets: dict[str, Any]
    """What surrounded the execution that is repeated."""
    packages: Mapping[bytes, str]
    """Whose each file is, by path."""
    descent: Descent
    show: tuple[int, int] | None = (1, 2)
    """Where its output and its errors are shown; None: they are only kept."""
    stdin: Callable[[], Iterable[bytes]] | None = None
    """What it reads, if that was kept."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Values that the caller gave to the command."""
    network: bool = False
    devices: tuple[str, ...] = ()
    """Paths of the host's devices and folders to be seen, with the same names."""


@dataclass
class Sandbox:
    """A stage; see `clew.run.stages.Stage`."""

    root: Root
    inside: Inside
    scratch: Path
    """An empty folder of its own, where what is written goes."""
    boot: str
    _pid: int = 0
    _keeper: int = 0
    _alive: int = -1
    _view: int = -1
    _said: int = -1
    _go: int = -1
    _handed: list[int] = field(default_factory=list)

    @property
    def machine(self) -> str:
        return self.inside.machine

    @property
    def cwd(self) -> Path:
        return self.inside.cwd

    @property
    def environ(self) -> Mapping[str, str]:
        return self.inside.environ

    @property
    def secrets(self) -> Mapping[str, str]:
        return self.inside.secrets

    @property
    def descent(self) -> Descent | None:
        return self.inside.descent

    def facets(self, redactor: Redactor) -> dict[str, Any]:
        here = environment.facets(self.cwd, self.environ, redactor, machine=self.machine)
        kept = {n: v for n, v in self.inside.facets.items() if n not in _HARDWARE}
        return {
            **kept,
            **{name: here[name] for name in _HARDWARE if name in here},
            "variables": here.get("variables", {}),
            "redacted": here.get("redacted", []),
            "network": self.inside.network,
        }

    def prepare(
        self, spool: Path, *, redactor: Redactor, limit: int, interest: Interest
    ) -> Streams:
        words: dict[str, Any] = self.inside.facets.get("streams", {})
        self._streams = streams.again(
            spool,
            words,
            redactor=redactor,
            limit=limit,
            stdin=self.inside.stdin,
            show=self.inside.show,
        )
        return self._streams

    # -- starting

    def start(self, what: Start) -> int:
        for name in ("upper", "work", "root"):
            (self.scratch / name).mkdir(parents=True)
        (self.scratch / "lower").symlink_to(self.root.path)
        said, tell = os.pipe()
        wait, go = os.pipe()
        tracer = [*self._launcher(tell, wait), *self._tracer(what)]
        self._pid = starting.start(
            tracer,
            {"PATH": os.environ.get("PATH", os.defpath)},
            descriptors=what.streams.descriptors,
            handed=(
                *(what.notify, tell, wait, *what.streams.reading.handed, *self._handed),
                *(() if what.ask is None else (what.ask,)),
            ),
            blocked=what.blocked,
        )
        for descriptor in (tell, wait, *self._handed):
            os.close(descriptor)
        self._handed.clear()
        self._said, self._go = said, go
        return self._pid

    def _launcher(self, tell: int, wait: int) -> list[str]:
        user = self.inside.facets.get("user", {})
        isolate = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        words = [_program("unshare"), "-Urm", "sh", "-c", _SCRIPT, "clew"]
        words += [os.fspath(self.scratch), str(self.inside.facets.get("umask") or "0022")]
        words += [_program("bwrap"), "--bind", os.fspath(self.scratch / "root"), "/"]
        words += ["--proc", "/proc", "--dev", "/dev"]
        for path in self.inside.devices:
            words += ["--dev-bind-try", path, path]
        words += isolate if self.inside.network else [*isolate, "--unshare-net"]
        words += ["--uid", str(user.get("uid", 0)), "--gid", str(user.get("gid", 0))]
        words += ["--hostname", str(self.inside.facets.get("hostname") or "localhost")]
        words += ["--die-with-parent", "--info-fd", str(tell), "--block-fd", str(wait)]
        return [*words, "--chdir", os.fspath(self.cwd), "--"]

    def _tracer(self, what: Start) -> list[str]:
        return native.tracer_command(
            what.command,
            tracer=self._hand(os.open(native.TRACER, os.O_RDONLY)),
            library=self._hand(os.open(native.LIBRARY, os.O_RDONLY)),
            trace=self._hand(os.open(what.trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)),
            spool=self._hand(os.open(what.spool, os.O_RDONLY)) if what.spool else None,
            notify=what.notify,
            exclude=what.exclude,
            environment=self._hand(_variables(self.environ)),
            opened=what.streams.opened,
            reading=what.streams.reading.descriptor,
            ask=what.ask,
            pin_clock=what.pins.clock,
            pin_random=what.pins.random,
            serial=what.pins.serial,
        )

    def _hand(self, descriptor: int) -> str:
        self._handed.append(descriptor)
        return f"/proc/self/fd/{descriptor}"

    def ready(self) -> tuple[bytes, Mapping[State, str]]:
        """The overlay is mounted, and the command waits: now its root can be had."""
        heard = b""
        while b"}" not in heard:
            word = os.read(self._said, 4096)
            if not word:
                starting.wait(self._pid)
                self._streams.finish()
                raise self.refusal()
            heard += word
        self._keeper = int(json.loads(heard)["child-pid"])
        self._alive = os.pidfd_open(self._keeper)
        place = f"/proc/{self._pid}/root{self.scratch / 'root'}"
        self._view = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        os.write(self._go, b"x")
        return self.view, self.root.states

    def refusal(self) -> RecordingFailed:
        """Why there is no sandbox, in the words of whoever could not make it."""
        kept = self._streams.kept.get("stderr")
        said = kept.path.read_text(errors="replace").strip() if kept else ""
        why = f": {said.splitlines()[-1]}" if said else ""
        return RecordingFailed(
            f"the sandbox could not be made{why}",
            hint="are user name spaces and overlays allowed here? see docs/reference/isolation.md",
        )

    @property
    def view(self) -> bytes:
        """Where the sandbox's files are seen from here, also when it has ended."""
        return b"/proc/self/fd/%d" % self._view

    def target(self, root: int | None) -> int | None:
        """Whatever signal comes ends the sandbox as a whole."""
        return self._keeper or None

    # -- the end

    def owners(self, paths: list[bytes]) -> Mapping[bytes, str]:
        return {p: self.inside.packages[p] for p in paths if p in self.inside.packages}

    def packages(self) -> dict[str, Any]:
        found: dict[str, Any] = self.inside.facets.get("packages", {})
        return found

    def close(self) -> None:
        """When this returns nobody has the sandbox's files open: removed, they leave room."""
        if self._alive >= 0:  # its first process ends a little later than who started it
            ended = select.poll()
            ended.register(self._alive, select.POLLIN)
            ended.poll(_PATIENCE)
        for descriptor in (self._said, self._go, self._view, self._alive):
            if descriptor >= 0:
                os.close(descriptor)
        self._said = self._go = self._view = self._alive = -1


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        package = {"bwrap": "bubblewrap", "unshare": "util-linux"}[name]
        raise ClewError(
            f"{name} is missing: repeating needs it",
            hint=f"install it (Debian: apt-get install {package})",
        )
    return found


def _variables(environ: Mapping[str, str]) -> int:
    """A nameless file with the variables, each ended by a zero byte."""
    descriptor = os.memfd_create("environment", os.MFD_CLOEXEC)
    entries = (os.fsencode(f"{name}={value}") for name, value in environ.items())
    os.write(descriptor, b"".join(entry + b"\0" for entry in entries))
    return descriptor
