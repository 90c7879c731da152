"""Run the same commands in a local project and against a server, and compare their output.

The server has its own state directory, and so another machine id than the client. The outputs must
be equal except for directories, uids, times and tokens.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.driver import Project
from tests.local.server import Server, run_server

_SAME = (
    (re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f]{24})?\b"), "UID"),
    (re.compile(r"\d+\.\d s\b"), "T s"),
    (re.compile(r"clew: (?:e\d+: )?this record was made elsewhere: .*\n"), ""),
    (re.compile(r" \(made elsewhere\)| · made elsewhere"), ""),
    (re.compile(r" {2,}"), " "),  # columns are as wide as their widest word
    (re.compile(r" +$", re.M), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.\d]*Z?"), "WHEN"),
    (re.compile(r"\([\d.]+ [kMG]?B (?=sent|fetched)"), "(SOME "),
)
_OTHERWISE = {"seconds", "new_bytes", "uid", "started", "ended", "at", "made_elsewhere", "warnings"}
"""Fields that differ between an execution recorded here and one sent to a server."""


class LocalAndRemote:
    """The project `local`, and the client `remote` of a server of the project `served`."""

    def __init__(self, local: Project, served: Project, server: Server, place: Path) -> None:
        self.local = local
        self.served = served
        self.server = server
        self.remote = Project(place / "asking", init=False, **server.variables)
        self.remote_folder = self.remote.folder
        self.place = place
        self.environment = self.remote.environment

    def folders(self) -> tuple[Path, Path]:
        return self.local.folder, self.remote_folder

    def write(self, name: str, text: str) -> None:
        for folder in self.folders():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)

    def read(self, name: str) -> str:
        one, other = ((folder / name).read_text() for folder in self.folders())
        assert one == other
        return one

    def remove(self, *names: str) -> None:
        for folder in self.folders():
            for name in names:
                (folder / name).unlink()

    def sh(self, line: str, *options: str) -> None:
        """Record a line of shell in both."""
        words = ("exec", *options, "--", "sh", "-c", line)
        assert self.local.command(*words).returncode == 0
        ran = self.run_remote(*words)
        assert ran.returncode == 0, ran.stderr
        assert b", sent as e" in ran.stderr

    def run_remote(self, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a command against the server only."""
        return self.remote.command(*words, **more)

    def remote_json(self, *words: str, **more: Any) -> Any:
        return json.loads(self.run_remote(*words, "--json", **more).stdout)

    def run_both(self, *words: str, status: int = 0, within: str = ".") -> Any:
        """Assert that both print the same; return it, parsed if it is JSON."""
        plain = self.local.command(*words, cwd=self.local.folder / within)
        asked = self.run_remote(*words, cwd=self.remote_folder / within)
        assert plain.returncode == status, plain.stderr
        assert asked.returncode == status, asked.stderr
        told = self._plain(plain.stdout), self._plain(plain.stderr)
        other = self._plain(asked.stdout), self._plain(asked.stderr)
        assert told == other, f"{words}:\n{told}\n{other}"
        return told[0]

    def metric(self, name: str) -> float:
        """The value of a metric of the server."""
        with self.server.client() as client:
            lines = client.get("/metrics").text.splitlines()
        (found,) = [line for line in lines if line.startswith(f"{name} ")]
        return float(found.split()[1])

    def count_requests(self, route: str) -> int:
        """The number of requests at a route."""
        return sum(line.get("route") == route for line in self.server.lines())

    def _plain(self, said: bytes) -> Any:
        text = said.decode()
        for folder in self.folders():
            text = text.replace(str(folder), "HERE")
        if text.startswith(("{", "[")):
            return _without(json.loads(text))
        for pattern, word in _SAME:
            text = pattern.sub(word, text)
        return text


def _without(document: Any) -> Any:
    if isinstance(document, dict):
        return {k: _without(v) for k, v in document.items() if k not in _OTHERWISE}
    return [_without(one) for one in document] if isinstance(document, list) else document


@contextmanager
def start_local_and_remote(place: Path, *options: str) -> Iterator[LocalAndRemote]:
    """Both have an execution e1 already, so that local ids differ from those of other projects."""
    local = Project(place / "own")
    served = Project(place / "there")
    for project in (local, served):
        project.sh("echo of somebody else")
    with run_server(served, *options) as server:
        yield LocalAndRemote(local, served, server, place)
