"""A real TensorBoard behind the server, asked for / as Kubeflow's routes do it."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.server import run_server
from tests.local.upstream import TargetTable
from tests.wait import wait_until

_BUILT = Path(__file__).parents[2] / "build" / "tensorflow" / "bin" / "tensorboard"
TENSORBOARD = shutil.which("tensorboard") or (str(_BUILT) if _BUILT.exists() else None)

WRITE = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(sys.argv[1])
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[value])))
writer.close()
"""


@pytest.mark.heavy
@pytest.mark.skipif(TENSORBOARD is None, reason="needs TensorBoard (make example-mnist)")
def test_scalars_are_seen(tmp_path: Path) -> None:
    assert TENSORBOARD is not None
    python = str(Path(TENSORBOARD).parent / "python")
    logs = tmp_path / "logs"
    subprocess.run([python, "-c", WRITE, str(logs)], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    table = TargetTable(tmp_path / "targets.toml")
    table.add("tensorboard/me/losses", port, 'rewrite = "/"')
    command = [TENSORBOARD, "--logdir", str(logs), "--port", str(port), "--host", "127.0.0.1"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
        run_server(Project(tmp_path), "--targets", str(table.path)) as server,
        server.apps_client() as client,
    ):
        prefix = "/tensorboard/me/losses/"
        try:
            while "http://" not in (tmp_path / "log").read_text():  # TensorFlow takes its time
                assert process.poll() is None
                time.sleep(0.1)
            assert "TensorBoard" in client.get(prefix).text
            tags = f"{prefix}data/plugin/scalars/tags"
            wait_until("its data", lambda: "loss" in client.get(tags).text)
            asked = f"{prefix}data/plugin/scalars/scalars?run=.&tag=loss"
            assert [step for _, step, _ in client.get(asked).json()] == [0, 1, 2, 3, 4]
        finally:
            process.terminate()
            process.wait(60)
