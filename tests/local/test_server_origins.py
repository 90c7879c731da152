"""Notebooks have an origin of their own: code in their pages cannot ask the API, nor each other."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import BrowserContext
from tests.browser import wait_for_value
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable, read_head, run_upstream
from tests.wait import wait_until

# What a hostile notebook's page tries, with its user's cookies; each finds what it could read.
ATTACK = """
<!doctype html><title>hostile</title><script>
const api = %(api)s, told = {}, wait = [];
const attempt = (name, promise) => wait.push(promise.then(
  (found) => { told[name] = found; }, () => { told[name] = 'refused'; }));
const read = (path, options) => fetch(path, {credentials: 'include', ...options})
  .then(async (got) => got.type === 'opaque' ? 'opaque' : got.status + await got.text());
const loaded = (kind, source) => new Promise((done, failed) => {
  const element = Object.assign(document.createElement(kind), {onload: () => done('loaded')});
  element.onerror = () => failed();
  element[kind === 'object' ? 'data' : kind === 'link' ? 'href' : 'src'] = source;
  if (kind === 'link') element.rel = 'stylesheet';
  document.body.append(element);
});
const framed = () => new Promise((done) => {
  const frame = document.createElement('iframe');
  frame.onload = () => {
    try { done(frame.contentDocument ? frame.contentDocument.body.innerText : 'refused'); }
    catch { done('refused'); }
  };
  frame.src = api + '/api/v1/executions';
  document.body.append(frame);
});
const socket = () => new Promise((done, failed) => {
  const one = new WebSocket(api.replace('http', 'ws') + '/notebook/me/hostile/');
  one.onopen = () => done('open'); one.onerror = () => failed();
});
const events = () => new Promise((done, failed) => {
  const one = new EventSource(api + '/api/v1/runs/r1/events', {withCredentials: true});
  one.onmessage = one.onopen = () => done('open'); one.onerror = () => { one.close(); failed(); };
});
addEventListener('load', async () => {
  attempt('read', read(api + '/api/v1/executions'));
  attempt('blind', read(api + '/api/v1/executions', {mode: 'no-cors'}));
  attempt('change', read(api + '/apis/v2beta1/experiments', {method: 'POST', mode: 'no-cors',
    body: JSON.stringify({display_name: 'by the notebook'})}));
  attempt('change as JSON', read(api + '/apis/v2beta1/experiments', {method: 'POST',
    headers: {'Content-Type': 'application/json'}, body: '{"display_name": "by the notebook"}'}));
  attempt('script', loaded('script', api + '/api/v1/executions'));
  attempt('picture', loaded('img', api + '/api/v1/executions'));
  attempt('style', loaded('link', api + '/'));
  attempt('frame', framed());
  attempt('socket', socket());
  attempt('events', events());
  attempt('own', read('/notebook/me/hostile/own'));
  const form = document.createElement('form');
  Object.assign(form, {method: 'post', action: api + '/logout', target: 'aside'});
  const aside = Object.assign(document.createElement('iframe'), {name: 'aside'});
  document.body.append(aside, form);
  form.submit();
  await Promise.all(wait);
  told.cookies = document.cookie;
  window.told = told;
});
</script><body></body>
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TargetTable:
    return TargetTable(tmp_path_factory.mktemp("origins") / "targets.toml")


@pytest.fixture(scope="module")
def server(table: TargetTable) -> Iterator[Server]:
    with run_server(Project(table.path.parent), "--targets", str(table.path)) as running:
        yield running


def test_a_hostile_notebook_cannot_ask_the_api(
    server: Server, table: TargetTable, browser: BrowserContext
) -> None:
    heard: list[bytes] = []

    async def hostile(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while text := await read_head(reader):
            heard.append(text)
            page = (ATTACK % {"api": json.dumps(server.address)}).encode()
            text = b"own" if b"/own " in text else page
            kind = b"Content-Type: text/html\r\nSet-Cookie: clew-apps-x=1\r\n"
            kind += b"Access-Control-Allow-Origin: *\r\nContent-Length: %d\r\n\r\n" % len(text)
            writer.write(b"HTTP/1.1 200 OK\r\n" + kind + text)
            await writer.drain()

    with run_upstream(hostile) as port, browser.new_page() as page, server.client() as client:
        table.add("notebook/me/hostile", port)
        # Log in without opening the app, whose own requests would be in the log, too.
        page.context.request.get(f"{server.address}/?token={server.token}")
        page.goto(f"{server.address}/notebook/me/hostile/")
        wait_for_value(page, "window.told !== undefined")
        assert page.evaluate("location.href") == f"{server.apps}/notebook/me/hostile/"
        told = page.evaluate("window.told")
        made = client.get("/apis/v2beta1/experiments").json().get("experiments", [])
        assert "by the notebook" not in json.dumps(made)
        assert told.pop("own") == "200own"
        assert "clew" not in told.pop("cookies")
        # An opaque answer cannot be read; that it was a refusal is in the log.
        assert told.pop("blind") in ("opaque", "refused")
        assert told.pop("change") in ("opaque", "refused")
        assert set(told.values()) == {"refused"}, told
        wanted = {"/api/v1/executions", "/api/v1/runs/r1/events", "/logout"}
        refused = {401, 403}
        wait_until("all to be tried", lambda: wanted <= {one[1] for one in asked(server)})
        tried = asked(server)
        assert wanted <= {path for _, path, status in tried if status == 403}
        served = {one for one in tried if one[2] not in refused}
        # What was served: the notebook itself, the way to it, and this test's own question.
        assert {one[1] for one in served if "/me/hostile/" not in one[1]} <= {
            "/.clew/login",
            "/apis/v2beta1/experiments",
        }
        assert not [one for one in served if one[0] == "POST"]
        page.goto(server.address)  # the session of the user is as it was
        wait_for_value(page, "document.title.endsWith('Clew')")
    assert not [one for one in heard if b"clew-" in one.lower()]


def asked(server: Server) -> set[tuple[str, str, int]]:
    """Method, path and status of what was asked so far, without what any page is asked for."""
    return {
        (line["method"], line["path"], line["status"])
        for line in server.lines()
        if line.get("event") == "request" and line["path"] not in ("/", "/healthz", "/favicon.ico")
    }


def test_the_api_leads_to_the_notebooks_and_serves_none(server: Server, table: TargetTable) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("it was asked")

    with run_upstream(never) as port, server.client() as client, server.apps_client() as apps:
        table.add("notebook/me/never", port)
        place = "/notebook/me/never/"
        assert client.get(place).status_code == 303
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            answer = client.request(method, place)
            assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")
            assert server.apps in answer.json()["title"]
        for path in ("/", "/api/v1/executions", "/healthz", "/metrics", "/logout", "/.clew/x"):
            assert apps.get(path).status_code == 404
            assert httpx2.get(server.apps + path).status_code == 404


def test_with_a_template_a_session_reaches_only_its_notebook(tmp_path: Path) -> None:
    table = TargetTable(tmp_path / "targets.toml")
    project = Project(tmp_path)
    asked = ("--targets", str(table.path), "--apps-origin", "http://{name}-{id}.example.org")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    # Names of example.org lead nowhere here: the port is dialled, and the host is stated.
    with run_upstream(answer) as port, run_server(project, *asked, "--apps-port", "0") as server:
        for name in ("a", "b"):
            table.add(f"notebook/me/{name}", port)
        apps = f"http://127.0.0.1:{_other_port(server)}"
        with server.client() as client:
            there = httpx2.URL(client.get("/notebook/me/a/").headers["location"])
            other = httpx2.URL(client.get("/notebook/me/b/").headers["location"])
        assert there.host.startswith("a-")
        assert there.host != other.host
        assert "{id}.example.org" in server.apps
        at = {"Host": there.host}
        entered = httpx2.get(apps + there.raw_path.decode(), headers=at)
        cookie = entered.headers["set-cookie"].split(";")[0]

        def status(path: str, host: str) -> int:
            given = {"Host": host, "Cookie": cookie}
            return httpx2.get(f"{apps}/notebook/me/{path}/", headers=given).status_code

        assert status("a", there.host) == 200
        assert status("b", there.host) == 421
        assert status("b", other.host) == status("a", other.host) == 401


def _other_port(server: Server) -> int:
    """The second port that the server listens on, as the kernel tells it."""
    held = {
        one.readlink().name.removeprefix("socket:[").removesuffix("]")
        for one in Path(f"/proc/{server.process.pid}/fd").iterdir()
        if "socket" in str(one.readlink())
    }
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    found = {int(one[1].split(":")[1], 16) for one in lines if one[3] == "0A" and one[9] in held}
    (port,) = found - {httpx2.URL(server.address).port}
    return port


def test_a_malformed_template_is_refused(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project / "targets.toml").touch()
    words = ("server", "--port", "0", "--apps-origin", "https://{who}.org")
    for more, said in (
        (("--targets", "targets.toml"), b"is not an origin"),
        ((), b"need applications to proxy"),
    ):
        ran = project.command(*words, *more)
        assert ran.returncode == 2
        assert said in ran.stderr
