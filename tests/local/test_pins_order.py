"""One process after the other: who would race does not; who needs another is not held for good."""

import sys
from pathlib import Path

import pytest
from tests.local.tracer import run_traced

from clew.run.launch.pins import Pins

SERIAL = Pins(serial=True)
CHANCE = "import random, time; time.sleep(random.random() / 5)"

RACES = {
    "pair": "(sleep 0.2; echo 1 >> out) & (echo 2 >> out) & wait",
    "parent": "(sleep 0.2; echo 1 >> out) & echo 2 >> out; wait",
    "many": f"for n in 1 2 3 4; do ('{sys.executable}' -c '{CHANCE}'; echo $n >> out) & done; wait",
    "xargs": "seq 4 | xargs -P 4 -I{} sh -c 'sleep 0.$((5 - {})); echo {} >> out'",
    "orphans": 'for n in 1 2; do (sh -c "sleep 0.$((3-n)); echo $n >> out" &) done; echo 3 >> out',
}


@pytest.mark.parametrize("line", RACES.values(), ids=RACES)
def test_processes_run_in_the_order_of_their_start(tmp_path: Path, line: str) -> None:
    run_traced(tmp_path, ["bash", "-c", line], SERIAL)
    written = (tmp_path / "out").read_text().split()
    assert written == sorted(written)
    assert len(written) > 1


def test_spawned_by_a_program(tmp_path: Path) -> None:
    code = """
import subprocess
started = [subprocess.Popen(["sh", "-c", f"sleep 0.{3 - n}; echo {n}"]) for n in range(3)]
print([process.wait() for process in started])
"""
    assert run_traced(tmp_path, [sys.executable, "-c", code], SERIAL) == "0\n1\n2\n[0, 0, 0]\n"


TOGETHER = {
    "pipeline": ["sh", "-c", "seq 200000 | sort -rn | head -1"],
    "endless": ["sh", "-c", "yes | head -1"],
    "pipes": [
        sys.executable,
        "-c",
        "import subprocess as s; print(s.run('cat', input=b'x' * 10**6, stdout=s.PIPE).stdout[:1])",
    ],
    "pool": [
        sys.executable,
        "-c",
        "import multiprocessing as m\nwith m.Pool(2) as pool: print(pool.map(abs, [-1, -2, -3]))",
    ],
    "fifo": ["sh", "-c", "mkfifo way; cat way & echo through > way; wait"],
    "stopped": ["sh", "-c", "sleep 600 & kill $!; wait; echo on"],
}
SAID = ["200000\n", "y\n", "b'x'\n", "[1, 2, 3]\n", "through\n", "on\n"]


@pytest.mark.parametrize(
    ("command", "said"), list(zip(TOGETHER.values(), SAID, strict=True)), ids=TOGETHER
)
def test_processes_that_need_each_other_continue(
    tmp_path: Path, command: list[str], said: str
) -> None:
    assert run_traced(tmp_path, command, SERIAL) == said


def test_a_server_and_its_clients(tmp_path: Path) -> None:
    serve = """
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("here")
server.listen()
for _ in range(3):
    client, _ = server.accept()
    print(client.recv(9).decode(), flush=True)
    client.close()
"""
    ask = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect("here")
client.send(sys.argv[1].encode())
client.recv(1)
"""
    (tmp_path / "serve.py").write_text(serve)
    (tmp_path / "ask.py").write_text(ask)
    python = f"'{sys.executable}'"
    line = f"{python} serve.py & for n in 1 2 3; do {python} ask.py $n & done; wait"
    assert run_traced(tmp_path, ["sh", "-c", line], SERIAL) == "1\n2\n3\n"
