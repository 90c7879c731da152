"""A Docker daemon of our own, with one small image: ended, and gone, with the tests."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"
_TOOLS = (
    "sh",
    "cat",
    "cp",
    "echo",
    "printf",
    "mkdir",
    "dirname",
    "grep",
    "head",
    "wc",
    "tr",
    "sleep",
)


class Docker:
    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, *words: str, data: bytes | None = None) -> str:
        ran = subprocess.run(
            ["docker", *words],
            input=data,
            check=True,
            capture_output=True,
            env={**os.environ, "DOCKER_HOST": self.address},
        )
        return ran.stdout.decode()

    def image(self, name: str, mark: str) -> None:
        """Busybox, and a file that tells one image from another."""
        busybox = shutil.which("busybox")
        if busybox is None:
            pytest.skip("there is no busybox here (Debian: busybox-static)")
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.add(busybox, "bin/busybox")
            for tool in _TOOLS:
                link = tarfile.TarInfo(f"bin/{tool}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
            text = tarfile.TarInfo("mark")
            text.size = len(mark)
            tar.addfile(text, io.BytesIO(mark.encode()))
        self("import", "-", name, data=archive.getvalue())


@contextmanager
def docker() -> Iterator[Docker]:
    path = f"{os.environ['PATH']}:{_PLACES}"
    daemon = shutil.which("dockerd", path=path)
    if daemon is None or shutil.which("docker") is None or os.geteuid():
        pytest.skip("a Docker daemon needs root, docker and dockerd (Debian: docker.io)")
    home = Path(tempfile.mkdtemp(prefix="clew-docker-"))  # a socket's path must be short
    address = f"unix://{home}/socket"
    places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
    words = [daemon, "-H", address, "--storage-driver", "vfs", "--bridge", "none"]
    words += ["--iptables=false", "--ip6tables=false"]
    for option, name in places.items():
        words += [f"--{option}", str(home / name)]
    log = (home / "log").open("wb")
    process = subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "PATH": path})
    try:
        found = Docker(address)
        until = time.monotonic() + 60
        while True:
            try:
                found("info")
                break
            except subprocess.CalledProcessError:
                if process.poll() is not None or time.monotonic() > until:
                    said = (home / "log").read_text()[-500:]
                    pytest.skip(f"no Docker daemon runs here: {said}")
                time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=60)
        log.close()
        shutil.rmtree(home, ignore_errors=True)
