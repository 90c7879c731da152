"""A real Prometheus."""

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.wait import wait_until


@contextmanager
def prometheus(targets: Sequence[str], folder: Path) -> Iterator[str]:
    """Run Prometheus, which scrapes HOST:PORT of each target five times a second; return its
    address."""
    found = shutil.which("prometheus")
    if found is None:
        pytest.fail("Prometheus is not installed: apt install prometheus (make test does it)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    job = {"job_name": "tested", "static_configs": [{"targets": list(targets)}]}
    settings = {"global": {"scrape_interval": "200ms"}, "scrape_configs": [job]}
    (folder / "prometheus.yml").write_text(json.dumps(settings))
    words = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={place}",
    ]
    with (
        (folder / "prometheus.log").open("ab") as log,
        subprocess.Popen([found, *words], stdout=log, stderr=log) as process,
    ):
        try:
            address = f"http://{place}"
            wait_until("Prometheus answers", lambda: _answers(address))
            yield address
        finally:
            process.kill()


def _answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/-/ready").is_success
    except httpx2.HTTPError:
        return False
