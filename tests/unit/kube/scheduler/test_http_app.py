"""The routes of the extender."""

import asyncio
from collections.abc import Mapping

import httpx2
import pytest
from tests.unit.kube.scheduler.requests import ignore, make_request

from clew.kube.scheduler.extender import Extender
from clew.kube.scheduler.http_app import make_app
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.kube.scheduler.wire_format import MAX_BODY_BYTES


def ask(
    method: str, path: str, body: bytes = b"", *, decides: bool = True, ready: bool = True
) -> httpx2.Response:
    metrics = Metrics()
    extender = Extender(SchedulingState(ignore), metrics) if decides else None
    app = make_app(extender, render_metrics=metrics.render, is_ready=lambda: ready)

    async def send() -> httpx2.Response:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://x") as http:
            return await http.request(method, path, content=body)

    return asyncio.run(send())


def test_decisions() -> None:
    answer = ask("POST", "/filter", make_request(["a"]))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["NodeNames"] == ["a"]
    assert ask("POST", "/prioritize", make_request(["a"])).json() == []


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({"method": "POST", "path": "/filter", "body": b"garbage"}, 400),
        ({"method": "POST", "path": "/filter", "body": b" " * (MAX_BODY_BYTES + 1)}, 400),
        ({"method": "GET", "path": "/filter"}, 405),
        ({"method": "POST", "path": "/bind"}, 404),
        ({"method": "POST", "path": "/filter", "decides": False}, 404),
        ({"method": "GET", "path": "/healthz", "ready": False}, 503),
        ({"method": "GET", "path": "/healthz", "decides": False}, 200),
        ({"method": "GET", "path": "/metrics", "decides": False}, 200),
    ],
)
def test_statuses(request_: Mapping[str, object], status: int) -> None:
    assert ask(**request_).status_code == status  # type: ignore[arg-type]
