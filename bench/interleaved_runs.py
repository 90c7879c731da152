"""Run several tools on the same work interleaved, one slice each in turn.

The speed of a machine drifts by several per cent, over seconds and minutes, so two equal tools that
run one after the other differ by as much. Slices of 50 ms see the same machine. The kernel reports
the cost of each tool at its end, with its start, its end and its child processes.
"""

import os
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

PATIENCE = 600.0  # a tool may take long to start, or for a slice


class Cost(NamedTuple):
    cpu: float
    wall: float


class Player:
    """One tool, which does a slice on request."""

    def __init__(
        self, words: Sequence[str], env: Mapping[str, str], home: Path, said: IO[bytes]
    ) -> None:
        """`words` takes two more: the pipes for its turn, and for saying that it is done."""
        self._pipes = []
        for name in ("turn", "done"):
            os.mkfifo(home / name)
            self._pipes.append(os.open(home / name, os.O_RDWR))
        names = [str(home / "turn"), str(home / "done")]
        self._process = subprocess.Popen(
            [*words, *names],
            cwd=home,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        self._wall = 0.0

    def slice(self) -> None:
        begin = time.perf_counter()
        os.write(self._pipes[0], b".")
        if not select.select([self._pipes[1]], [], [], PATIENCE)[0]:
            raise SystemExit(f"it did not do its slice: {self._process.args!r}")
        os.read(self._pipes[1], 1)
        self._wall += time.perf_counter() - begin

    def end(self) -> Cost:
        _, status, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        for pipe in self._pipes:
            os.close(pipe)
        if self._process.returncode:
            raise SystemExit(f"{self._process.returncode}: {self._process.args!r}")
        return Cost(usage.ru_utime + usage.ru_stime, self._wall)


def run_interleaved(
    tools: Mapping[str, tuple[Sequence[str], Mapping[str, str]]],
    command: Sequence[str],
    slices: int,
    home: Path,
) -> dict[str, Cost]:
    """What each tool, with its words and environment, took for `command`."""
    with tempfile.TemporaryFile() as said:
        players = {}
        for name, (prefix, env) in tools.items():
            place = Path(tempfile.mkdtemp(dir=home))
            players[name] = Player([*prefix, *command, str(slices)], env, place, said)
        order = list(players.values())
        for _ in range(slices):
            for player in order:
                player.slice()
            order.append(order.pop(0))
        return {name: player.end() for name, player in players.items()}
