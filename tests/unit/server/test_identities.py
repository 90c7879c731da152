"""Every route of the application, asked with every kind of identity.

The routes are those that the application has, so a new one is tested, too. No request gets further
than its authentication, since the application serves none at once: what passes is answered with
503. So streams do not hang, and nothing is changed.
"""

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.testclient import TestClient
from tests.unit.server.served_project import BEARER, ORIGIN, TOKEN, Served, serve_project

from clew.server import app as app_module
from clew.server.catalogue.access_tokens import add_token
from clew.server.http.client_limits import Limits
from clew.server.identity.access_tokens import new_token
from clew.server.identity.authentication import PUBLIC_PATHS
from clew.server.identity.sessions import API_AUDIENCE, Session, Sessions, apps_audience
from clew.server.kubeflow.csrf import COOKIE, HEADER

SAFE = ("GET", "HEAD")
PASSED = HTTPStatus.SERVICE_UNAVAILABLE
REFUSED = HTTPStatus.UNAUTHORIZED
FORBIDDEN = HTTPStatus.FORBIDDEN
CSRF = "k" * 43
SAME = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
KUBEFLOW = re.compile(r"/(jupyter|tensorboards|volumes)/(api/|info$)")
TARGETS = ("/notebook/local/x/", "/tensorboard/local/x/", "/pvcviewers/local/x/")


@dataclass(frozen=True)
class Identity:
    session: str = ""
    """What the cookie is made of; see `World.session`."""
    headers: dict[str, str] = field(default_factory=dict)
    safe: int = PASSED
    unsafe: int = PASSED


IDENTITIES = {
    "nobody": Identity(safe=REFUSED, unsafe=REFUSED),
    "a wrong token": Identity(headers={"Authorization": "Bearer no"}, safe=REFUSED, unsafe=REFUSED),
    "no bearer": Identity(headers={"Authorization": TOKEN}, safe=REFUSED, unsafe=REFUSED),
    "a user's name": Identity(headers={"kubeflow-userid": "eve"}, safe=REFUSED, unsafe=REFUSED),
    "a page of the app without a session": Identity(headers=SAME, safe=REFUSED, unsafe=REFUSED),
    "a forged session": Identity("forged", SAME, safe=REFUSED, unsafe=REFUSED),
    "an expired session": Identity("expired", SAME, safe=REFUSED, unsafe=REFUSED),
    "an ended session": Identity("ended", SAME, safe=REFUSED, unsafe=REFUSED),
    "a notebook's session": Identity("notebook", SAME, safe=REFUSED, unsafe=REFUSED),
    "an expired access token": Identity("old access token", safe=REFUSED, unsafe=REFUSED),
    "a session, of an unknown page": Identity("valid", safe=PASSED, unsafe=FORBIDDEN),
    "a session, of this server's page": Identity("valid", SAME),
    "a session, of another site": Identity(
        "valid", {"Origin": "https://evil.example"}, safe=FORBIDDEN, unsafe=FORBIDDEN
    ),
    "a session, of a notebook on another port": Identity(
        "valid",
        {"Origin": "http://127.0.0.1:8101", "Sec-Fetch-Site": "same-site"},
        safe=FORBIDDEN,
        unsafe=FORBIDDEN,
    ),
    "a session, of a sandboxed frame": Identity(
        "valid", {"Origin": "null"}, safe=FORBIDDEN, unsafe=FORBIDDEN
    ),
    "the token": Identity(headers=BEARER),
    "the token, of another site": Identity(headers=BEARER | {"Origin": "https://evil.example"}),
    "an access token": Identity("access token"),
    "the token, for a user whom the gateway names": Identity(
        headers=BEARER | {"kubeflow-userid": "ann"}
    ),
    "a session, for a user whom the gateway names": Identity(
        "valid", SAME | {"kubeflow-userid": "ann"}
    ),
    "a forged session, for a user whom the gateway names": Identity(
        "forged", SAME | {"kubeflow-userid": "ann"}, safe=REFUSED, unsafe=REFUSED
    ),
}


class World:
    """A server, its routes, and the identities at it."""

    def __init__(self, served: Served, app: FastAPI) -> None:
        self.served = served
        self.client = served.client_with(Limits(requests=0, streams=0))
        self.routes = sorted(
            {
                (method, re.sub(r"\{[^}]*\}", "x", route.path or ""))
                for route in iter_route_contexts(app.routes)
                for method in route.methods or ("GET",)
            }
            | {(method, path) for method in ("GET", "POST") for path in TARGETS}
        )
        self._cookie = app.state.cookies[0]
        self._sessions: Sessions = app.state.sessions
        self._ended = self._sessions.begin()
        asyncio.run(self._sessions.end(self._ended))
        with served.service.graph() as graph:
            self._access, stored = new_token("for the test", 3600, scope="all")
            add_token(graph, stored)
            self._old_access, stored = new_token("an old one", -1, scope="all")
            add_token(graph, stored)

    def headers(self, identity: Identity) -> dict[str, str]:
        kind, found = identity.session, dict(identity.headers)
        if "access token" in kind:
            token = self._old_access if "old" in kind else self._access
            return found | {"Authorization": f"Bearer {token}"}
        if kind:
            found["Cookie"] = f"{self._cookie}={self._value(kind)}"
        return found

    def _value(self, kind: str) -> str:
        sessions, fresh = self._sessions, self._sessions.begin()
        if kind == "notebook":
            return sessions.value(fresh, apps_audience("127.0.0.1:8101"))
        if kind == "expired":
            fresh = Session(fresh.id, int(time.time()) - 1)
        value = sessions.value(self._ended if kind == "ended" else fresh, API_AUDIENCE)
        return value[:-1] + ("a" if value[-1] != "a" else "b") if kind == "forged" else value


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    found: list[FastAPI] = []

    class Recorded(FastAPI):
        def setup(self) -> None:
            super().setup()
            found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app_module, "FastAPI", Recorded)
        with serve_project(tmp_path_factory.mktemp("project")) as served:
            served.service.settings = replace(
                served.service.settings, user_header="kubeflow-userid"
            )
            yield World(served, found[0])


@pytest.mark.parametrize("name", IDENTITIES)
def test_every_route_knows_who_asks(world: World, name: str) -> None:
    identity = IDENTITIES[name]
    wrong = []
    for method, path in world.routes:
        answer = world.client.request(
            method, path, headers=world.headers(identity), follow_redirects=False
        )
        expected = identity.safe if method in SAFE else identity.unsafe
        if path in TARGETS and expected == PASSED:
            expected = HTTPStatus.NOT_FOUND  # the proxy has limits of its own, and no targets
        if path in PUBLIC_PATHS:
            expected = HTTPStatus.OK
        if answer.status_code != expected:
            wrong.append(f"{method} {path}: {answer.status_code}, not {int(expected)}")
    assert not wrong, "\n".join(wrong)


def test_the_table_has_the_routes(world: World) -> None:
    paths = {path for _, path in world.routes}
    some = {"/", "/metrics", "/api/v1/executions", "/apis/v2beta1/runs", "/jupyter/api/config"}
    assert paths >= {*some, "/volumes/api/namespaces/x/viewers/x", "/logout", *TARGETS}
    assert len(world.routes) > 150


@pytest.mark.parametrize("path", ["/jupyter/api/namespaces", "/volumes/info", "/api/v1/backend"])
def test_who_is_nobody_learns_so_in_the_words_of_the_api(world: World, path: str) -> None:
    answer = world.client.get(path)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    if KUBEFLOW.match(path):
        assert answer.json()["success"] is False
        assert (answer.json()["status"], answer.json()["user"]) == (401, None)
    else:
        assert answer.json()["code"] == "unauthorised"


@pytest.mark.parametrize(
    ("cookie", "header", "refused"),
    [
        (CSRF, CSRF, False),
        (CSRF, "", True),
        ("", CSRF, True),
        ("", "", True),
        (CSRF, CSRF[:-1] + "x", True),
        (CSRF, CSRF[:-1] + "ä", True),
    ],
)
def test_pages_repeat_the_cookie_to_kubeflows_routes(
    world: World, cookie: str, header: str, refused: bool
) -> None:
    """Of a valid session of this server's page; the token needs none of it."""
    client = world.served.client
    unsafe = [one for one in world.routes if KUBEFLOW.match(one[1]) and one[0] not in SAFE]
    assert len(unsafe) >= 9
    for method, path in unsafe:
        headers = world.headers(IDENTITIES["a session, of this server's page"])
        headers["Cookie"] += f"; {COOKIE}={cookie}" if cookie else ""
        given = [*headers.items(), *([(HEADER, header.encode("latin-1"))] if header else [])]
        answer = client.request(method, path, headers=given, json={})
        assert (answer.status_code == FORBIDDEN) == refused, (method, path, answer.text)
        if refused:
            assert answer.json()["success"] is False
        assert client.request(method, path, headers=BEARER, json={}).status_code != FORBIDDEN
    readable = [path for method, path in world.routes if KUBEFLOW.match(path) and method == "GET"]
    for path in readable:
        session = world.headers(IDENTITIES["a session, of this server's page"])
        assert client.get(path, headers=session).status_code in (200, 404), path


def test_a_page_gets_the_cookie_and_keeps_it(world: World) -> None:
    with TestClient(world.served.client.app, base_url=ORIGIN) as browser:
        assert browser.get(f"/?token={TOKEN}").status_code == 200
        first = browser.cookies[COOKIE]
        assert re.fullmatch(r"[\w-]{43}", first)
        again = browser.get("/notebooks")
        assert browser.cookies[COOKIE] == first
        assert "HttpOnly" not in again.headers["set-cookie"]
        assert "SameSite=strict" in again.headers["set-cookie"]
        body = {"name": "of-a-page"}
        send = {**SAME, HEADER: first}
        path = "/jupyter/api/namespaces/local/notebooks"
        assert browser.post(path, json=body, headers=send).status_code == 200
