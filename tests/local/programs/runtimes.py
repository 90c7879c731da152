"""Container runtimes of our own, with small images: ended, and gone, with the tests."""

import io
import json
import os
import resource
import secrets
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

PLACE = "/usr/local/src/kfp/components"
"""Where the SDK puts the files of a containerised component."""
BRIDGE, BRIDGE_NETWORK = "198.51.100.1", "198.51.100.1/24"
"""The address of this machine on the bridge of `docker(network=True)`."""
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
_LOADED = """
import json, os, sys, kfp.dsl.executor_main
packages = os.path.dirname(os.path.dirname(kfp.__file__))
files = [getattr(one, "__file__", None) or "" for one in sys.modules.values()]
names = {os.path.relpath(one, packages).split("/")[0] for one in files if one.startswith(packages)}
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps([packages, sorted(names), sorted(mapped)]))
"""
_LEFT_OUT = ("site-packages", "test", "tests", "idlelib", "ensurepip", "__pycache__")
_PODMAN = """
[containers]
default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
"""
_STORAGE = """
[storage]
driver = "vfs"
runroot = "{home}/exec"
graphroot = "{home}/data"
"""


class Daemon:
    """One that answers to `client`, where `variables` say where it is."""

    def __init__(self, client: Sequence[str], variables: Mapping[str, str]) -> None:
        self.variables = variables
        self._client = client

    def __call__(self, *words: str, data: bytes | None = None) -> str:
        ran = subprocess.run(
            [*self._client, *words],
            input=data,
            check=True,
            capture_output=True,
            env={**os.environ, **self.variables},
        )
        return ran.stdout.decode()

    def runs(self, image: str) -> None:
        """Skip, and say why, where it answers but can run nothing."""
        try:
            self("run", "--rm", "--network", "host", "--entrypoint", "sh", image, "-c", "echo")
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip()[-500:]
            pytest.skip(f"{self._client[0]} can run no container here: {said}")

    def image(self, name: str, mark: str) -> None:
        """Busybox, and a file that tells one image from another."""
        self("import", "-", name, data=_archive(lambda tar: _small(tar, mark)))

    def python_image(self, name: str, files: Path) -> None:
        """Busybox, Python and the SDK, with these files: what `kfp component build` makes."""

        def fill(tar: tarfile.TarFile) -> None:
            _small(tar, "python")
            _python(tar)
            tar.add(files, PLACE.lstrip("/"))

        words = ["--change", "ENV PYTHONPATH=/packages", "--change", f"WORKDIR {PLACE}"]
        self("import", *words, "-", name, data=_archive(fill))


def _archive(fill: Callable[[tarfile.TarFile], None]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        fill(tar)
    return archive.getvalue()


def _small(tar: tarfile.TarFile, mark: str) -> None:
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("there is no busybox here (Debian: busybox-static)")
    tar.add(busybox, "bin/busybox")
    for tool in _TOOLS:
        _link(tar, f"bin/{tool}", "busybox")
    text = tarfile.TarInfo("mark")
    text.size = len(mark)
    tar.addfile(text, io.BytesIO(mark.encode()))


def _python(tar: tarfile.TarFile) -> None:
    """The Python of the tests, and as much of the SDK as it loads."""
    loaded = subprocess.run([sys.executable, "-c", _LOADED], check=True, stdout=subprocess.PIPE)
    packages, names, mapped = json.loads(loaded.stdout)
    program = os.path.realpath(sys.executable)
    standard = sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix})
    for file in sorted({program, *_libraries([program, *mapped])}):
        if not file.startswith((packages, f"{standard}/")):
            _copy(tar, os.path.realpath(file), file)
    _link(tar, "bin/python3", program)
    tar.add(standard, standard.lstrip("/"), filter=_wanted)
    for name in names:
        tar.add(f"{packages}/{name}", f"packages/{name}", filter=_wanted)


def _libraries(files: Sequence[str]) -> set[str]:
    """What these programs and libraries load, by the names that they know it by."""
    said = subprocess.run(["ldd", *files], check=True, capture_output=True, text=True).stdout
    return {word for word in said.split() if word.startswith("/") and not word.endswith(":")}


def _copy(tar: tarfile.TarFile, source: str, target: str) -> None:
    """As a file of its own, whatever else has the same content."""
    entry = tarfile.TarInfo(target.lstrip("/"))
    data = Path(source).read_bytes()
    entry.size, entry.mode = len(data), 0o755
    tar.addfile(entry, io.BytesIO(data))


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = os.path.basename(entry.name)
    return None if name in _LEFT_OUT or name.startswith("config-") else entry


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    tar.addfile(link)


@contextmanager
def docker(*, network: bool = False) -> Iterator[Daemon]:
    """`network`: containers can have one, by a bridge that goes with the daemon."""
    daemon = _program("dockerd")
    if daemon is None or shutil.which("docker") is None or os.geteuid():
        pytest.skip("a Docker daemon needs root, docker and dockerd (Debian: docker.io)")
    home = Path(tempfile.mkdtemp(prefix="clew-docker-"))  # a socket's path must be short
    address = f"unix://{home}/socket"
    places = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
    words = [daemon, "-H", address, "--storage-driver", "vfs"]
    words += ["--iptables=false", "--ip6tables=false"]
    for option, name in places.items():
        words += [f"--{option}", str(home / name)]
    with (
        _bridge() if network else nullcontext("none") as bridge,
        _serving(
            home, [*words, "--bridge", bridge], Daemon(["docker"], {"DOCKER_HOST": address}), {}
        ) as found,
    ):
        yield found


@contextmanager
def _bridge() -> Iterator[str]:
    """A bridge in a network that nothing else uses: one of those for documentation."""
    name = f"clew-{secrets.token_hex(4)}"
    subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", BRIDGE_NETWORK, "dev", name], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


@contextmanager
def podman() -> Iterator[Daemon]:
    daemon = _program("podman")
    if daemon is None or _program("runc") is None or os.geteuid():
        pytest.skip("Podman's service needs root, podman and runc (Debian: podman, runc)")
    home = Path(tempfile.mkdtemp(prefix="clew-podman-"))
    address = f"unix://{home}/socket"
    (home / "storage.conf").write_text(_STORAGE.format(home=home))
    limits = _limit(resource.RLIMIT_NOFILE), _limit(resource.RLIMIT_NPROC)
    (home / "containers.conf").write_text(_PODMAN.format(nofile=limits[0], nproc=limits[1]))
    settings = {
        "CONTAINERS_CONF": str(home / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(home / "storage.conf"),
    }
    words = [daemon, "system", "service", "--time", "0", address]
    client = Daemon([daemon, "--remote"], {**settings, "CONTAINER_HOST": address})
    with _serving(home, words, client, settings) as found:
        yield found


def _limit(number: int) -> int:
    """Few enough: by itself it asks for more than it may have where it is not all-powerful."""
    _, hard = resource.getrlimit(number)
    return 4096 if hard == resource.RLIM_INFINITY else min(hard, 4096)


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:{_PLACES}")


@contextmanager
def _serving(
    home: Path, words: Sequence[str], found: Daemon, settings: Mapping[str, str]
) -> Iterator[Daemon]:
    environment = {**os.environ, **settings, "PATH": f"{os.environ['PATH']}:{_PLACES}"}
    log = (home / "log").open("wb")
    process = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
    try:
        until = time.monotonic() + 60
        while True:
            try:
                found("info")
                break
            except subprocess.CalledProcessError as error:
                if process.poll() is not None or time.monotonic() > until:
                    said = (home / "log").read_text()[-500:] or error.stderr.decode()[-500:]
                    pytest.skip(f"{words[0]} does not serve here: {said}")
                time.sleep(0.05)
        yield found
    finally:
        process.terminate()
        process.wait(timeout=60)
        log.close()
        shutil.rmtree(home, ignore_errors=True)
