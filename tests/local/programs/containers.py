"""Runs images with a containerd of its own, and reads what they left behind."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

CONFIG = """\
version = 2
root = "{0}/root"
state = "{0}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{0}/containerd.sock"
"""


def needed(*programs: str) -> None:
    """Skip, and say why, where one of these cannot be had."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program} here (make test installs it where it can)")


@dataclass(frozen=True)
class Containerd:
    """A daemon with folders and a socket that nobody else uses."""

    home: Path

    def ctr(self, *words: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        command = ["ctr", "--address", f"{self.home}/containerd.sock", *words]
        return subprocess.run(command, capture_output=True, timeout=300, **more)  # type: ignore[call-overload,no-any-return]

    def load(self, archive: Path) -> str:
        """Import an image; its name."""
        loaded = self.ctr("images", "import", str(archive))
        assert loaded.returncode == 0, loaded.stderr.decode()
        names = self.ctr("images", "list", "--quiet").stdout.decode().split()
        return names[-1]

    @contextlib.contextmanager
    def run(
        self, image: str, name: str, *options: str
    ) -> Iterator[tuple[subprocess.CompletedProcess[bytes], Path]]:
        """Run an image to its end; what it said, and where its files are seen meanwhile."""
        ran = self.ctr("run", *options, image, name, stdin=subprocess.DEVNULL)
        files = self.home / f"files-{name}"
        files.mkdir()
        mount = self.ctr("snapshots", "mounts", str(files), name).stdout.decode().split()
        try:
            subprocess.run(mount, check=True)
            yield ran, files
        finally:
            subprocess.run(["umount", files], check=False)
            self.ctr("containers", "rm", name)


@contextlib.contextmanager
def containerd() -> Iterator[Containerd]:
    """Started, and ready by its own word."""
    needed("containerd", "ctr", "runc")
    if os.geteuid():
        pytest.skip("only root can start a containerd of its own")
    # a socket's path must be short
    home = Path(tempfile.mkdtemp(prefix="clew-ctr-"))
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.settimeout(60)
    ready.bind(f"{home}/ready")
    (home / "config.toml").write_text(CONFIG.format(home))
    with open(home / "log", "wb") as log:
        daemon = subprocess.Popen(
            ["containerd", "--config", str(home / "config.toml")],
            env={**os.environ, "NOTIFY_SOCKET": f"{home}/ready"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        while b"READY=1" not in ready.recv(4096):
            pass
        yield Containerd(home)
    finally:
        ready.close()
        daemon.terminate()
        daemon.wait(timeout=60)
        shutil.rmtree(home, ignore_errors=True)
