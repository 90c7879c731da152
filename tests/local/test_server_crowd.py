"""Many clients at once, and clients and servers that are cut off in the middle of it."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.local.programs.recording import Project
from tests.local.serving import Server, serving
from tests.local.surviving import await_

CLIENTS, EACH = 50, 4
SPEC = {
    "pipelineInfo": {"name": "nothing"},
    "root": {"dag": {"tasks": {}}},
    "schemaVersion": "2.1.0",
    "sdkVersion": "kfp-2.17.0",
}
KFP = "/apis/v2beta1"


def everything(client: httpx2.Client, what: str, **more: Any) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = client.get(f"{KFP}/{what}", params={"page_size": 30, "page_token": token, **more})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page.get(what, [])
        token = page.get("next_page_token", "")
        if not token:
            return found


def visit(server: Server, number: int) -> list[str]:
    """One client: it creates and lists by turns, and answers with what it created."""
    made = []
    with server.client() as client:
        for n in range(EACH):
            asked = {"display_name": f"{number}-{n}", "pipeline_spec": SPEC}
            answer = client.post(f"{KFP}/runs", json=asked)
            assert answer.status_code == 200, answer.text
            made.append(answer.json()["run_id"])
            listed = client.get(f"{KFP}/runs", params={"page_size": 20})
            assert listed.status_code == 200, listed.text
            shown = client.get(f"{KFP}/runs/{made[-1]}")
            assert shown.status_code == 200, shown.text
    return made


def test_fifty_clients_that_create_and_list_at_once_lose_nothing(project: Project) -> None:
    with serving(project) as server, ThreadPoolExecutor(CLIENTS) as clients:
        created = [
            run for made in clients.map(visit, [server] * CLIENTS, range(CLIENTS)) for run in made
        ]
        with server.client() as client:
            known = {run["run_id"]: run for run in everything(client, "runs")}
            assert len(created) == CLIENTS * EACH
            assert known.keys() == set(created)
            await_(
                "the end of some", lambda: any(_is_over(client, run) for run in reversed(created))
            )
        bad = [line for line in server.lines() if line.get("status", 200) >= 400]
    assert not bad


def _is_over(client: httpx2.Client, run: str) -> bool:
    return bool(client.get(f"{KFP}/runs/{run}").json()["state"] == "SUCCEEDED")


def half_sent(server: Server, path: str, kind: str, body: bytes) -> None:
    """A request whose client goes away in the middle of its body."""
    place = urlsplit(server.address)
    assert place.hostname and place.port
    with socket.create_connection((place.hostname, place.port)) as client:
        head = [
            f"POST {path} HTTP/1.1",
            f"Host: {place.netloc}",
            f"Authorization: Bearer {server.token}",
            f"Content-Type: {kind}",
            f"Content-Length: {2 * len(body)}",
        ]
        client.sendall("\r\n".join([*head, "", ""]).encode() + body)


@pytest.mark.parametrize("killed", [False, True], ids=["client", "server"])
def test_an_upload_that_is_cut_off_leaves_nothing(project: Project, killed: bool) -> None:
    text = json.dumps(SPEC)
    part = (
        '--b\r\nContent-Disposition: form-data; name="uploadfile"; filename="p.yaml"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n{text}\r\n"
    )
    asked = json.dumps({"display_name": "half", "pipeline_spec": SPEC})
    with serving(project) as server:
        half_sent(
            server,
            f"{KFP}/pipelines/upload?name=half",
            "multipart/form-data; boundary=b",
            part.encode(),
        )
        half_sent(server, f"{KFP}/runs", "application/json", asked.encode())
        if killed:
            server.process.kill()
            server.process.wait()
    with serving(project) as server, server.client() as client:
        assert everything(client, "pipelines") == []
        assert everything(client, "runs") == []
        file = {"uploadfile": ("p.yaml", text.encode(), "application/octet-stream")}
        again = client.post(f"{KFP}/pipelines/upload", params={"name": "half"}, files=file)
        assert again.status_code == 200, again.text
        assert [one["display_name"] for one in everything(client, "pipelines")] == ["half"]
