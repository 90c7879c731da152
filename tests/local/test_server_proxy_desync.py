"""Request smuggling through the proxy, tried against a real nginx and a real Jupyter behind it."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.local import desync
from tests.local.server import Server
from tests.local.test_server_websockets import jupyter
from tests.local.upstream import TargetTable

_WEB = "/notebook/me/web/"


class Front:
    """The server, with nginx behind it as notebook/me/web."""

    def __init__(self, server: Server, log: Path, client: httpx2.Client) -> None:
        host, port = server.apps.removeprefix("http://").split(":")
        self._address = (host, int(port))
        self._log = log
        self._client = client
        self._sent = 0
        self.token = server.token

    def withstands(self, data: bytes) -> bytes:
        """Send an attack, then ask as another client does: the attack must not be noticed."""
        answer = desync.send(self._address, data, self.token)
        self._sent += 1
        path = f"{_WEB}victim/{self._sent}"
        assert self._client.get(path).text == f"GET {path}", data
        assert b" 500 " not in answer, (data, answer)
        return answer

    def seen(self) -> list[str]:
        """The requests that nginx has read, without those of the other client."""
        asked = re.findall(r'"(.*)" \d+$', self._log.read_text(), re.MULTILINE)
        return [one for one in asked if "/victim/" not in one]

    def withstands_all(self, attacks: Iterable[bytes]) -> None:
        for one in attacks:
            self.withstands(one)
        asked = set(self.seen())
        honest = re.compile(rf"[A-Z]+ {_WEB}(?:outer|last) HTTP/1.1")
        assert not [one for one in asked if not honest.fullmatch(one)]


@pytest.fixture(scope="module")
def front(server: Server, table: TargetTable) -> Iterator[Front]:
    folder = table.path.parent / "nginx"
    with desync.nginx(folder) as (port, log), server.apps_client() as client:
        table.add("notebook/me/web", port)
        yield Front(server, log, client)


def test_no_spelling_of_a_length_smuggles_a_request(front: Front) -> None:
    front.withstands_all(desync.sample(front.token))


@pytest.mark.parametrize("named", ["content-length", "Host", "close, CONTENT-LENGTH, host"])
def test_a_connection_header_drops_neither_the_length_nor_the_host(
    front: Front, named: str
) -> None:
    """The attack that worked: nginx took the body for a second request."""
    length, connection = desync.LENGTHS[0], f"Connection: {named}".encode()
    attack = desync.attack(
        b"GET", length=length, coding=b"", connection=connection, token=front.token
    )
    before = len(front.seen())
    assert b"GET /notebook/me/web/outer" in front.withstands(attack)
    assert front.seen()[before] == f"GET {_WEB}outer HTTP/1.1"
    assert not any("smuggled" in one for one in front.seen())


def test_pipelined_requests_are_answered_in_their_order(front: Front) -> None:
    def one(path: str, method: str = "GET", body: str = "") -> str:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        head = f"{method} {_WEB}{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {front.token}"
        return f"{head}\r\n{length}\r\n{body}"

    sent = one("a") + one("b", "POST", "GET /x HTTP/1.1\r\n\r\n") + one("c", "HEAD") + one("d")
    answered = re.findall(
        rb"(?:GET|POST) /notebook/me/web/([a-z]+)", front.withstands(sent.encode())
    )
    assert answered == [b"a", b"b", b"d", b"last"]


def test_a_request_for_another_protocol_with_a_body_is_refused(front: Front) -> None:
    """The server's parser ends such a request with its head; what is behind waits for the body."""
    head = f"POST {_WEB}outer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {front.token}\r\n"
    more = "Connection: upgrade\r\nUpgrade: {}\r\nContent-Length: 5\r\n\r\n"
    for protocol in ("h2c", "x"):
        answer = front.withstands((head + more.format(protocol)).encode() + b"hello")
        assert answer.startswith(b"HTTP/1.1 400 "), protocol


def test_a_connection_is_closed_where_another_protocol_was_asked_for(front: Front) -> None:
    """Its parser reads nothing more, so later requests would wait for ever."""
    head = f"GET {_WEB}outer HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {front.token}\r\n"
    answer = front.withstands(f"{head}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n".encode())
    assert answer.lower().startswith(b"http/1.1 200 ")
    assert b"connection: close" in answer.lower()
    assert answer.endswith(b"outer")


def test_a_real_jupyter_sees_no_smuggled_request(
    tmp_path: Path, server: Server, table: TargetTable
) -> None:
    host, port = server.apps.removeprefix("http://").split(":")
    with jupyter(tmp_path / "home", "/notebook/me/lab/") as behind, server.apps_client() as client:
        table.add("notebook/me/lab", behind)
        for attack in desync.sample(server.token):
            ours = attack.replace(b"/me/web/outer", b"/me/lab/api").replace(b"/me/web", b"/me/lab")
            desync.send((host, int(port)), ours, server.token)
            assert "version" in client.get("/notebook/me/lab/api").json()
    assert "smuggled" not in (tmp_path / "home" / "log").read_text()


@pytest.mark.heavy
def test_no_combination_smuggles_a_request(front: Front) -> None:
    """Every third of all combinations of method, lengths, codings and `Connection`."""
    attacks = list(desync.every(front.token))
    front.withstands_all(attacks[::3])


_NAME = st.sampled_from(
    (b"Content-Length", b"Transfer-Encoding", b"Connection", b"Host", b"Upgrade", b"Expect", b"X")
)
_SPACE = st.sampled_from((b"", b" ", b"\t", b"\x0b", b"\x0c", b"\r", b"\n", b"\r\n ", b"\x00"))
_VALUE = st.sampled_from((b"chunked", b"0", b"5", b"61", b"identity", b"websocket", b"host", b"x"))
_LINE = st.builds(
    lambda name, value, *space: space[0] + name + space[1] + b":" + space[2] + value + space[3],
    _NAME, _VALUE, _SPACE, _SPACE, _SPACE, _SPACE,
)  # fmt: skip


@pytest.mark.heavy
def test_no_mixture_of_headers_smuggles_a_request(front: Front) -> None:
    @settings(
        max_examples=1500,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(desync.METHODS), st.lists(_LINE, max_size=4))
    def tried(method: bytes, lines: list[bytes]) -> None:
        connection = b"\r\n".join(lines)
        front.withstands(
            desync.attack(method, length=b"", coding=b"", connection=connection, token=front.token)
        )

    tried()
    # Without a length, what follows the head is the client's own second request.
    assert not [one for one in front.seen() if not one.startswith(_honest())]


def _honest() -> tuple[str, ...]:
    return tuple(f"{method.decode()} {_WEB}" for method in desync.METHODS)
