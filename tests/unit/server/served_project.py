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
from clew.workloads.backend import Backend
from clew.workloads.local.local_backend import LocalBackend

TOKEN = "the token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ORIGIN = "http://127.0.0.1:8100"


@dataclass
class Served:
    service: Service
    client: TestClient
    """Without any identity: send `BEARER` along, or log in."""

    @property
    def backend(self) -> LocalBackend:
        assert isinstance(self.service.backend, LocalBackend)
        return self.service.backend

    def client_with(self, limits: Limits) -> TestClient:
        """Another one, of an application with these limits."""
        proxy = Proxy(None, UsageRecorder(self.service), TOKEN)
        return TestClient(build_app(self.service, limits, proxy, None), base_url=ORIGIN)


@contextmanager
def serve_project(root: Path, backend: Backend | None = None) -> Iterator[Served]:
    """A new project in `root`, whose notebooks, TensorBoards and viewers run here, or in
    `backend`."""
    with clew.init(root) as project:
        service = Service(project.directory, project.settings, TOKEN)
        local = LocalBackend(project.directory) if backend is None else None
    service.backend = backend or local
    if local is not None:
        local.start()
    try:
        proxy = Proxy(None, UsageRecorder(service), TOKEN)
        client = TestClient(build_app(service, Limits(), proxy, None), base_url=ORIGIN)
        with client:
            yield Served(service, client)
    finally:
        service.feeds.end()
        if local is not None:
            local.close()
        service.close()
