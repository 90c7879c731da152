"""Two gigabytes through the server, to a viewer and back: nobody holds more than some pieces."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.server import run_server
from tests.local.test_cmd_viewer import PREFIX, viewing
from tests.local.upstream import TargetTable

SIZE = 2 << 30
PIECE = 1 << 20
MORE = 48 << 20
"""What either process may need beyond what it had before the first byte."""


def _memory(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) << 10


@pytest.mark.heavy
def test_memory_use_is_constant(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = TargetTable(tmp_path / "targets.toml")
    (tmp_path / "data").mkdir()
    sent, came = hashlib.blake2b(), hashlib.blake2b()

    def pieces() -> Iterator[bytes]:
        for number in range(SIZE // PIECE):
            piece = number.to_bytes(8, "big") * (PIECE // 8)
            sent.update(piece)
            yield piece

    with (
        viewing(tmp_path / "data") as viewer,
        run_server(project, "--targets", str(table.path)) as server,
        server.apps_client(timeout=600) as client,
    ):
        table.add("pvcviewer/me/data", viewer.port)
        client.put(f"{PREFIX}files/small", content=b"x" * (4 << 20))
        client.get(f"{PREFIX}files/small")
        both = (viewer.process.pid, server.process.pid)
        before = [_memory(process) for process in both]
        headers = {"Content-Length": str(SIZE)}
        answer = client.put(f"{PREFIX}files/large", content=pieces(), headers=headers)
        assert answer.status_code == 201
        with client.stream("GET", f"{PREFIX}files/large") as got:
            for data in got.iter_raw():
                came.update(data)
        after = [_memory(process) for process in both]
    assert came.digest() == sent.digest()
    assert all(now - then < MORE for then, now in zip(before, after, strict=True))
