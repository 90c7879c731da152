"""Run `clew server` in a project, and talk to it over HTTP."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests import forkserver
from tests.driver import CLEW, Project


@dataclass
class ServerAddress:
    """Where a server is, and its token."""

    address: str
    token: str
    apps: str
    """The address of its applications; empty: none."""

    @property
    def variables(self) -> dict[str, str]:
        """The environment of commands that use it."""
        return {"CLEW_SERVER": self.address, "CLEW_TOKEN": self.token}

    def client(self, **more: Any) -> httpx2.Client:
        """A client with the token. It loads no certificates, which takes 30 ms."""
        headers = {"Authorization": f"Bearer {self.token}"}
        given = {"base_url": self.address, "headers": headers, "timeout": 120, "verify": False}
        return httpx2.Client(**given | more)

    def apps_client(self, **more: Any) -> httpx2.Client:
        """A client with the token, for the address of applications."""
        return self.client(base_url=self.apps, **more)


@dataclass
class Server(ServerAddress):
    """A server that runs on this machine. Its stderr goes to the file `log`."""

    process: subprocess.Popen[str]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """The lines logged so far."""
        said = self.log.read_text().splitlines()
        return [json.loads(line) for line in said if line.startswith("{")]

    def stop(self) -> int:
        """Terminate it and return its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=60)


@contextmanager
def run_server(project: Project, *words: str) -> Iterator[Server]:
    """Run `clew server` in the project, on a free port, until the end of the block.

    It runs no pipelines unless `--runs` is among the words: a runner costs more than the server. It
    has the sample pipelines only with `--samples`.
    """
    runs = () if "--runs" in words else ("--runs", "0")
    with _run(project, "server", "--no-samples", *runs, *words) as server:
        yield server


@contextmanager
def run_up(project: Project, *words: str) -> Iterator[Server]:
    """Run `clew up` in the project: a server with notebooks, TensorBoards and volumes."""
    with _run(project, "up", "--no-browser", *words) as server:
        yield server


@contextmanager
def _run(project: Project, *words: str) -> Iterator[Server]:
    path = project.folder.parent / "server.log"
    settings: dict[str, Any] = {"cwd": project.folder, "env": project.environment, "text": True}
    command = [*CLEW, words[0], "--port", "0", "--json", *words[1:]]
    with (
        path.open("a") as log,
        forkserver.Popen(command, stdout=subprocess.PIPE, stderr=log, **settings) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, path.read_text()
            said = json.loads(line)
            server = Server(said["address"], said["token"], said["apps"] or "", process, path)
            with server.client() as client:
                assert client.get("/healthz").status_code == 200
            yield server
            server.stop()
        finally:
            process.kill()
