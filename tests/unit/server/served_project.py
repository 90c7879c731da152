"""The whole application in this process, with the back end of this machine: no socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.testclient import TestClient

import clew
from clew.server.app import build_app
from clew.server.http.client_limits import Limits
from clew.server.proxy.routing import Proxy
from clew.server.proxy.usage import UsageRecorder
from clew.server.server_state import Service
from clew.workloads.local.local_backend import LocalBackend

TOKEN = "the token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ORIGIN = "http://127.0.0.1:8100"


@dataclass
class Served:
    service: Service
    backend: LocalBackend
    client: TestClient
    """Without any identity: send `BEARER` along, or log in."""

    def client_with(self, limits: Limits) -> TestClient:
        """Another one, of an application with these limits."""
        proxy = Proxy(None, UsageRecorder(self.service), TOKEN)
        return TestClient(build_app(self.service, limits, proxy, None), base_url=ORIGIN)


@contextmanager
def serve_project(root: Path) -> Iterator[Served]:
    """A new project in `root`, whose notebooks, TensorBoards and viewers run here."""
    with clew.init(root) as project:
        service = Service(project.directory, project.settings, TOKEN)
        backend = LocalBackend(project.directory)
    service.backend = backend
    backend.start()
    try:
        proxy = Proxy(None, UsageRecorder(service), TOKEN)
        client = TestClient(build_app(service, Limits(), proxy, None), base_url=ORIGIN)
        with client:
            yield Served(service, backend, client)
    finally:
        service.feeds.end()
        backend.close()
        service.close()
