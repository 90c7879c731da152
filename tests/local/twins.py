"""The same commands twice: in a folder with a project of its own, and in one that asks a server.

The server is "on another machine": it has other state, and so another machine id, than whoever
asks. What the two say must be the same, but for where the folders are, uids, times and tokens.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.driver import Project
from tests.local.serving import Server, serving

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


class Twins:
    """`own` is a project. `asking` is a folder without one, `far`, that asks the server of the
    project `there`."""

    def __init__(self, own: Project, there: Project, server: Server, place: Path) -> None:
        self.own = own
        self.there = there
        self.server = server
        self.asking = Project(
            place / "asking", init=False, CLEW_SERVER=server.address, CLEW_TOKEN=server.token
        )
        self.far = self.asking.folder
        self.place = place
        self.environment = self.asking.environment

    def folders(self) -> tuple[Path, Path]:
        return self.own.folder, self.far

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
        """Record a line of shell on either side."""
        words = ("exec", *options, "--", "sh", "-c", line)
        assert self.own.command(*words).returncode == 0
        ran = self.asked(*words)
        assert ran.returncode == 0, ran.stderr
        assert b", sent as e" in ran.stderr

    def asked(self, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Through the server alone."""
        return self.asking.command(*words, **more)

    def json(self, *words: str, **more: Any) -> Any:
        return json.loads(self.asked(*words, "--json", **more).stdout)

    def same(self, *words: str, status: int = 0, within: str = ".") -> Any:
        """Either way says the same; the document, if the words ask for one, or what was printed."""
        plain = self.own.command(*words, cwd=self.own.folder / within)
        asked = self.asked(*words, cwd=self.far / within)
        assert plain.returncode == status, plain.stderr
        assert asked.returncode == status, asked.stderr
        told = self._plain(plain.stdout), self._plain(plain.stderr)
        other = self._plain(asked.stdout), self._plain(asked.stderr)
        assert told == other, f"{words}:\n{told}\n{other}"
        return told[0]

    def metric(self, name: str) -> float:
        """What the server has counted."""
        with self.server.client() as client:
            lines = client.get("/metrics").text.splitlines()
        (found,) = [line for line in lines if line.startswith(f"{name} ")]
        return float(found.split()[1])

    def asked_for(self, route: str) -> int:
        """How often the server was asked at a route."""
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
def twins(place: Path, *options: str) -> Iterator[Twins]:
    """Either has an execution e1 of somebody else, so that ids here and there are not the same."""
    own = Project(place / "own")
    there = Project(place / "there")
    for project in (own, there):
        project.sh("echo of somebody else")
    with serving(there, *options) as server:
        yield Twins(own, there, server, place)
