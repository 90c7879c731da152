"""A container without a runtime: a process in a cgroup and a mount namespace of its own.

It does what runc does: it is in the cgroup of a Pod, makes its mounts under another name, waits,
and then runs a program.
"""

import ctypes
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clew.witness.tracer_binary import LAYER

_DETACH = 2
PREPARE = """
import os, sys
cgroup, volume, log, point = sys.argv[1:5]
for directory in cgroup.split(":"):
    with open(f"{directory}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))
with open("/proc/self/comm", "w") as file:
    file.write("runc:[2:INIT]")
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind=None, flags=0):
    encoded = [None if one is None else one.encode() for one in (source, target, kind)]
    assert libc.mount(*encoded, flags, None) == 0, os.strerror(ctypes.get_errno())
assert libc.unshare(0x20000) == 0
mount(None, "/", flags=0x40000 | 0x4000)
mount(volume, point, flags=4096)
mount(log, f"{point}.log", flags=4096)
sys.stdout.write("ready\\n")
sys.stdout.flush()
os.read(0, 1)
os.chdir(point)
os.execvp(sys.argv[5], sys.argv[5:])
"""


class NodeContainer:
    """Its program runs when `run` is called; the working directory is the volume."""

    def __init__(self, pods: Path, volume: Path, home: Path, *command: str, pod: str = "") -> None:
        self.pod = pod or str(uuid.uuid4())
        self.id = uuid.uuid4().hex * 2
        self.point = home / f"mnt-{self.id[:8]}"
        self.point.mkdir()
        self.point.with_suffix(".log").touch()
        log = home / "pods" / self.pod / "containers" / "main" / self.id[:8]
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        self.cgroup = pods / f"pod{self.pod}" / self.id
        self.cgroup.mkdir(parents=True)
        words = [str(one) for one in (self.cgroup, volume, log, self.point)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", PREPARE, *words, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout and self._process.stdout.readline() == "ready\n"

    @property
    def uid(self) -> str:
        return f"{self.pod.replace('-', '')}/{self.id}"

    def begin(self) -> None:
        """Run the program, which reads its input."""
        self.send("")

    def send(self, line: str) -> None:
        """Give the program a line of input."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def run(self) -> str:
        """Run the program to its end; returns what it printed."""
        return self.end("")

    def end(self, line: str) -> str:
        """Give the program its last line of input, and wait for its end."""
        said, _ = self._process.communicate(f"{line}\n", timeout=300)
        assert self._process.returncode == 0
        return said

    def remove(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        with suppress(FileNotFoundError):
            self.cgroup.rmdir()
            self.cgroup.parent.rmdir()


@contextmanager
def fuse_mount(kind: str, source: Path, point: Path) -> Iterator[None]:
    """A file system of this kind (`fuse.…`) that shows a directory: as network file systems do,
    it has a program of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    words = [one.encode() for one in ("server", str(point), kind)]
    assert libc.mount(*words, 0, options.encode()) == 0, os.strerror(ctypes.get_errno())
    root, log = os.open(source, os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
    numbers = (device, root, log)
    program = subprocess.Popen([LAYER, *map(str, numbers), "1"], pass_fds=numbers)
    for number in numbers:
        os.close(number)
    try:
        yield
    finally:
        assert libc.umount2(str(point).encode(), _DETACH) == 0
        program.wait()


@contextmanager
def pods_directory() -> Iterator[Path]:
    """A directory of cgroups for Pods."""
    root = Path("/sys/fs/cgroup")
    if (root / "pids").is_dir():
        root /= "pids"
    top = root / f"clew-test-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    (top / "kubepods").mkdir(parents=True)
    try:
        yield top / "kubepods"
    finally:
        for directory in sorted(top.rglob("*"), reverse=True):
            if directory.is_dir():
                directory.rmdir()
        top.rmdir()
