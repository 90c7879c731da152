"""Sessions: they expire, are valid for one origin, and can be revoked on every server."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.upstream import TargetTable, respond_with, run_upstream
from tests.wait import wait_until

import clew
from clew.server.identity.sessions import (
    API_AUDIENCE,
    SESSION_SECONDS,
    Session,
    Sessions,
    apps_audience,
)
from clew.server.server_state import Service

ASKED = "/api/v1/executions"
BOOK = "/notebook/me/book/"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="module")
def table(project: Project) -> Iterator[TargetTable]:
    found = TargetTable(project.folder.parent / "targets.toml")
    with run_upstream(respond_with(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbook")) as port:
        found.add("notebook/me/book", port)
        yield found


@pytest.fixture(scope="module")
def server(project: Project, table: TargetTable) -> Iterator[Server]:
    with run_server(project, "--targets", str(table.path)) as running:
        yield running


@pytest.fixture
def browser(server: Server) -> Iterator[httpx2.Client]:
    """Logged in, as one that opened the address the server printed."""
    with httpx2.Client(base_url=server.address) as client:
        assert client.get("/", params={"token": server.token}).status_code == 303
        yield client


Forge = Callable[[Session, str], str]


@pytest.fixture(scope="module")
def forge(project: Project, server: Server) -> Forge:
    """Values as the server itself would make them."""
    with clew.open(project.folder) as opened:
        service = Service(opened.directory, opened.settings, server.token)
    return Sessions(service).value


def asked(address: str, **cookies: str) -> int:
    written = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return httpx2.get(address, headers={"Cookie": written}).status_code


def test_a_session_ends_by_itself(server: Server, browser: httpx2.Client, forge: Forge) -> None:
    ((name, value),) = browser.cookies.items()
    until = int(value.split(".")[1])
    assert abs(until - time.time() - SESSION_SECONDS) < 600
    soon = Session("0" * 32, int(time.time()) + 600)
    assert asked(server.address + ASKED, **{name: forge(soon, API_AUDIENCE)}) == 200
    past = Session("0" * 32, int(time.time()) - 1)
    assert asked(server.address + ASKED, **{name: forge(past, API_AUDIENCE)}) == 401


def test_the_cookie_expires_and_does_not_contain_the_token(server: Server) -> None:
    given = httpx2.get(f"{server.address}/?token={server.token}").headers["set-cookie"]
    assert f"Max-Age={SESSION_SECONDS}" in given
    assert "HttpOnly" in given
    assert "Path=/" in given
    assert server.token not in given
    secure = httpx2.get(
        f"{server.address}/?token={server.token}", headers={"X-Forwarded-Proto": "https"}
    ).headers["set-cookie"]
    assert secure.startswith("__Host-clew-")
    assert "Secure" in secure


def test_a_forged_session_is_refused(server: Server, browser: httpx2.Client) -> None:
    ((name, value),) = browser.cookies.items()
    identity, until, signature = value.split(".")
    for forged in (
        f"{identity}.{int(until) + 1}.{signature}",
        f"{'0' * 32}.{until}.{signature}",
        f"{identity}.{until}.{'0' * 64}",
        f"{identity}.{until}",
        f"{identity}.{until}.",
        server.token,
        "",
        "....",
        "ÿ",
    ):
        cookie = f"{name}={forged}".encode("latin-1")
        answer = httpx2.get(server.address + ASKED, headers=[(b"Cookie", cookie)])
        assert answer.status_code == 401, forged
    # A page on another port can add cookies of the same name, but not shut the user out.
    many = f'a="; {name}=x; {name}={value}; {name}=y'
    assert httpx2.get(server.address + ASKED, headers={"Cookie": many}).status_code == 200


def test_a_session_is_valid_for_one_origin(
    server: Server, browser: httpx2.Client, forge: Forge
) -> None:
    ((name, api),) = browser.cookies.items()
    apps_name = name.replace("clew-", "clew-apps-")
    there = browser.get(BOOK)
    assert there.status_code == 303
    assert there.headers["location"].startswith(f"{server.apps}/.clew/login?token=")
    entered = browser.get(there.headers["location"])
    assert (entered.status_code, entered.headers["location"]) == (303, BOOK)
    assert browser.get(server.apps + BOOK).text == "book"
    value = browser.cookies[apps_name]
    for cookie in (name, apps_name):
        assert asked(server.apps + BOOK, **{cookie: api}) == 401
        assert asked(server.address + ASKED, **{cookie: value}) == 401
    assert asked(server.apps + BOOK, **{apps_name: value}) == 200
    elsewhere = forge(Session("0" * 32, int(time.time()) + 60), apps_audience("elsewhere.example"))
    assert asked(server.apps + BOOK, **{apps_name: elsewhere}) == 401


def test_a_ticket_is_valid_once_and_where_it_leads(server: Server, browser: httpx2.Client) -> None:
    def ticket() -> str:
        return browser.get(f"{BOOK}lab?a=%20b&token={server.token}").headers["location"]

    used = ticket()
    assert server.token not in used
    entered = httpx2.get(used)
    assert entered.headers["location"] == f"{BOOK}lab?a=%20b"
    assert httpx2.get(used).status_code == 401
    assert httpx2.URL(used).params["token"] not in server.log.read_text()
    assert "set-cookie" not in httpx2.get(used).headers
    assert httpx2.get(ticket(), headers={"Host": "elsewhere.example"}).status_code == 401
    away = ticket().partition("&to=")[0]
    for to in ("//elsewhere.example/", "https://elsewhere.example/", "/", "/api/v1/x/y", "\\\\a"):
        assert httpx2.get(away, params={"to": to}).status_code == 401, to


def test_logging_out_ends_the_session_at_every_origin_and_server(
    project: Project, table: TargetTable, server: Server, browser: httpx2.Client
) -> None:
    browser.get(browser.get(BOOK).headers["location"])
    held = dict(browser.cookies.items())
    with run_server(project, "--targets", str(table.path)) as other:
        assert asked(other.address + ASKED, **held) == 200
        assert browser.post("/logout").status_code == 403, "no page of ours asked"
        late = browser.get(BOOK).headers["location"]
        ended = browser.post("/logout", headers={"Origin": server.address})
        assert ended.status_code == 200
        assert all("Max-Age=0" in one for one in ended.headers.get_list("set-cookie"))
        assert not browser.cookies
        assert asked(server.address + ASKED, **held) == 401
        assert asked(server.apps + BOOK, **held) == 401
        assert httpx2.get(late).status_code == 401
        wait_until("the other server to know", lambda: asked(other.address + ASKED, **held) == 401)
    with server.client() as client:
        assert client.post("/logout").status_code == 400


def test_a_new_token_ends_all_sessions(tmp_path: Path) -> None:
    project = Project(tmp_path)
    with run_server(project) as server, httpx2.Client() as browser:
        browser.get(f"{server.address}/?token={server.token}")
        held = dict(browser.cookies.items())
        assert asked(server.address + ASKED, **held) == 200
    with run_server(project) as server:
        assert asked(server.address + ASKED, **held) == 200, "a restart ends none"
    (project / ".clew/token").write_text("another one\n")
    with run_server(project) as server:
        assert asked(server.address + ASKED, **held) == 401


@pytest.mark.parametrize(
    ("to", "opened"),
    [
        ("/runs?q=state%3Afailed", "/runs?q=state%3Afailed"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/\t/evil.example", "/"),
        ("/runs\r\nSet-Cookie: a=b", "/"),
        ("", "/"),
    ],
)
def test_a_login_leads_only_to_paths_of_the_server(server: Server, to: str, opened: str) -> None:
    with httpx2.Client(base_url=server.address) as client:
        answer = client.get("/", params={"token": server.token, "to": to})
        assert (answer.status_code, answer.headers["location"]) == (303, opened)
        asked = {"Accept": "text/html"}
        refused = client.get("/", params={"token": "wrong", "to": to}, headers=asked)
        assert refused.status_code == 401
        assert "This is not the token of the project." in refused.text
        assert ('name="to"' in refused.text) == (opened != "/")
        assert "set-cookie" not in refused.headers


def test_the_login_page_leads_back_to_where_the_user_wanted_to_go(server: Server) -> None:
    asked = {"Accept": "text/html"}
    with httpx2.Client(base_url=server.address, headers=asked) as client:
        page = client.get('/runs?q="><script>alert(1)</script>')
    assert page.status_code == 401
    assert '<input type="hidden" name="to" value="/runs?q=' in page.text
    assert "<script>" not in page.text


def test_browsers_keep_no_copy_of_what_the_server_answers(browser: httpx2.Client) -> None:
    for path in (ASKED, "/api/v1/overview", "/apis/v2beta1/runs", "/api/v1/executions/none"):
        assert browser.get(path).headers["cache-control"] == "no-store", path
