"""The files of the web app, over the routes alone."""

import gzip
import re
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from clew.errors import NotFound
from clew.server import web_app


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    assets = tmp_path / "assets"
    assets.mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Clew</title>")
    (tmp_path / "secret").write_text("outside the assets")
    (assets / "index-a1b2.js").write_text("run()")
    (assets / "index-a1b2.js.gz").write_bytes(gzip.compress(b"run()"))
    (assets / "theme.js").write_text("theme()")
    monkeypatch.setattr(web_app, "DIRECTORY", tmp_path)
    app = FastAPI()
    web_app.include(app)
    return TestClient(app, raise_server_exceptions=True)


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/r1", "/volumes/local/data", "/jupyter/"])
def test_every_view_is_the_page(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert (page.status_code, "<title>Clew" in page.text) == (200, True)
    policy = page.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert not re.search(r"script-src[^;]*unsafe", policy)
    assert "frame-ancestors 'none'" in policy


def test_files_are_compressed_for_clients_that_can_decompress(client: TestClient) -> None:
    compressed = client.get("/assets/index-a1b2.js")
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.text == "run()"
    plain = client.get("/assets/index-a1b2.js", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, plain.text) == (False, "run()")
    assert "immutable" in plain.headers["cache-control"]
    assert client.get("/assets/theme.js").headers["cache-control"] == "no-cache"


def test_an_update_is_served_without_a_restart(client: TestClient) -> None:
    client.get("/assets/theme.js")
    assets = web_app.DIRECTORY / "assets"
    (assets / "index-c3d4.js").write_text("updated()")
    assert client.get("/assets/index-c3d4.js").text == "updated()"


@pytest.mark.parametrize("name", ["nothing.js", "..%2Fsecret", "%2e%2e%2fsecret", ".."])
def test_nothing_else_can_be_read(client: TestClient, name: str) -> None:
    try:
        response: httpx2.Response | None = client.get(f"/assets/{name}")
    except NotFound:
        return
    assert response is not None
    assert response.status_code == 404 or "outside" not in response.text


def test_without_the_build_the_page_says_so(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "index.html").unlink()
    page = client.get("/")
    assert (page.status_code, "make web" in page.text) == (503, True)
