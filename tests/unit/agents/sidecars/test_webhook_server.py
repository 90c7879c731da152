"""The webhook serves with a certificate that it made itself, and takes over a renewed one."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from functools import partial
from http.client import HTTPSConnection

import pytest
from tests.wait import wait_until

from clew.agents.sidecars import webhook_server
from clew.agents.sidecars.certificates import AUTHORITIES, issue, utc_now
from clew.agents.sidecars.sidecar_injection import inject_sidecar
from clew.agents.sidecars.webhook_server import WebhookServer
from clew.errors import Conflict
from clew.kube.webhook_objects import SecretEntries, WebhookObjects

HOST = "clew-inject.clew-inject.svc"


class Objects(WebhookObjects):
    """The objects in memory; another replica writes the Secret first, once."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.version = 0
        self.trusted = b""
        self.raced = False

    @property
    def host(self) -> str:
        return HOST

    def read_secret(self) -> SecretEntries:
        return SecretEntries(self.entries, {"version": self.version})

    def write_secret(self, before: SecretEntries, entries: object) -> None:
        if not self.raced:
            self.raced = True
            self.entries, self.version = issue(HOST, utc_now(), {}), 1
        if before.found["version"] != self.version:
            raise Conflict("changed")
        assert isinstance(entries, dict)
        self.entries, self.version = entries, self.version + 1

    def publish_authorities(self, bundle: bytes) -> bool:
        changed, self.trusted = bundle != self.trusted, bundle
        return changed


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def port(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(webhook_server, "_CHECK_SECONDS", 0.05)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found = int(probe.getsockname()[1])
    server = WebhookServer(
        f"127.0.0.1:{found}",
        changes={"/pods": partial(inject_sidecar, image="sidecar")},
        objects=objects,
    )
    stopping, ready = threading.Event(), threading.Event()
    thread = threading.Thread(target=server.run, args=(stopping,), kwargs={"ready": ready.set})
    thread.start()
    assert ready.wait(30)
    yield found
    stopping.set()
    thread.join()


def ask(
    port: int, objects: Objects, method: str, path: str, body: bytes = b""
) -> tuple[int, bytes]:
    trust = ssl.create_default_context(cadata=objects.trusted.decode())
    trust.check_hostname = False  # it is asked by its address here
    connection = HTTPSConnection("127.0.0.1", port, context=trust, timeout=30)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_answers_and_takes_over_a_renewed_certificate(port: int, objects: Objects) -> None:
    wait_until("the webhook listens", lambda: listens(port))
    assert objects.raced
    assert objects.trusted == objects.entries[AUTHORITIES]
    assert ask(port, objects, "GET", "/healthz") == (200, b"ok")
    made = {"metadata": {}, "spec": {"containers": [{"name": "main"}]}}
    request = {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}, "object": made}
    review = {"apiVersion": "admission.k8s.io/v1", "request": request}
    status, answer = ask(port, objects, "POST", "/pods", json.dumps(review).encode())
    assert (status, json.loads(answer)["response"]["allowed"]) == (200, True)
    assert ask(port, objects, "POST", "/pods", b"{}")[0] == 400
    assert ask(port, objects, "GET", "/pods")[0] == 404
    objects.entries = issue(HOST, utc_now(), {})  # as another replica renews it

    def is_taken_over() -> bool:
        try:
            return ask(port, objects, "GET", "/healthz")[0] == 200
        except ssl.SSLCertVerificationError:
            return False

    wait_until(
        "the new authority is published", lambda: objects.trusted == objects.entries[AUTHORITIES]
    )
    wait_until("the new certificate is used", is_taken_over)
