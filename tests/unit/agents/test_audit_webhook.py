"""The audit webhook takes events over HTTPS from the API server, and from no other client."""

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.witness.kubernetes_audit.audit_log import POD, POD_UID, audit, pod

from clew.agents.audit.ingestion import AuditIngestion
from clew.agents.audit.webhook import AuditWebhook
from clew.agents.spool import Spool
from clew.errors import UsageError
from clew.prov.events import Alias, AnyEvent, Started

TOKEN = "t0ken-0123456789abcdef"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", made),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return made, key


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


class Webhook:
    """A running webhook."""

    def __init__(self, folder: Path, tls: tuple[Path, Path], token: Path) -> None:
        self.spool = Spool(folder / "spool")
        ingestion = AuditIngestion(folder, self.spool, source="webhook")
        made, key = tls
        witness = AuditWebhook(
            "127.0.0.1:0", ingestion, certificate=made, key=key, token_file=token
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=witness.run, args=(self._stopping,))
        self._thread.start()
        trust = ssl.create_default_context(cafile=str(made))
        self.client = httpx2.Client(base_url=witness.address, verify=trust, timeout=60)

    def post(self, body: Any, token: str = TOKEN) -> int:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        return self.client.post("/", content=content, headers=headers).status_code

    def events(self) -> list[AnyEvent]:
        return [one for batch in self.spool.list_batches() for one in self.spool.read(batch)]

    def close(self) -> None:
        self.client.close()
        self._stopping.set()
        self._thread.join()
        self.spool.close()


@pytest.fixture
def webhook(tmp_path: Path, certificate: tuple[Path, Path], token_file: Path) -> Iterator[Webhook]:
    found = Webhook(tmp_path, certificate, token_file)
    yield found
    found.close()


def events(*audited: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": list(audited)}


def test_events_are_in_the_spool_when_it_answers(webhook: Webhook) -> None:
    assert webhook.post(events(audit("create", "pods", pod()))) == 200
    assert [one.kind for one in webhook.events() if isinstance(one, Started)] == ["pod"]
    assert webhook.post(events()) == 200


@pytest.mark.parametrize("token", ["x", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN.upper()])
def test_other_clients_are_refused(webhook: Webhook, token: str) -> None:
    assert webhook.post(events(audit("create", "pods", pod())), token) == 401
    assert webhook.client.get("/").status_code == 401
    assert webhook.events() == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1]", b'{"items": 1}', b"\xff", b"[" * 100_000, {"kind": "EventList"}]
)
def test_what_is_no_list_of_events_is_refused(webhook: Webhook, body: Any) -> None:
    assert webhook.post(body) == 400
    assert webhook.events() == []


def test_event_that_is_none_does_not_hide_the_others(webhook: Webhook) -> None:
    assert webhook.post(events({"a": 1}, audit("create", "pods", pod()))) == 200
    kinds = [one.kind for one in webhook.events() if isinstance(one, Started)]

    assert sorted(kinds) == ["controller", "pod"], "the first one is a gap of the log"


def test_full_spool_asks_for_patience_and_forgets_nothing(
    webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An EndpointSlice lists its Pods again and again; only new ones are events."""
    about = {"name": "web-1", "namespace": "team", "uid": POD_UID}
    about["labels"] = {"kubernetes.io/service-name": "web"}
    target = {"kind": "Pod", "namespace": "team", "name": "train", "uid": POD_UID}
    slice_ = {"metadata": about, "endpoints": [{"targetRef": target}]}
    listed = events(audit("create", "discovery.k8s.io/endpointslices", slice_))
    with monkeypatch.context() as patched:
        patched.setattr(webhook.spool, "_limit", 1)
        assert webhook.post(listed) == 429
    assert webhook.events() == []
    assert webhook.post(listed) == 200
    assert [one.b for one in webhook.events() if isinstance(one, Alias)] == [f"pod://{POD}"]


def test_unsafe_settings_are_refused(tmp_path: Path, token_file: Path) -> None:
    spool = Spool(tmp_path / "spool")
    ingestion = AuditIngestion(tmp_path, spool, source="webhook")
    short = tmp_path / "short"
    short.write_text("secret")
    settings: list[tuple[str, Path | None, Path | None]] = [
        ("0.0.0.0:8443", None, token_file),
        ("127.0.0.1:8443", None, None),
        ("127.0.0.1:8443", None, short),
        ("127.0.0.1:8443", token_file, token_file),
        ("nowhere", None, token_file),
    ]
    for address, certificate, token in settings:
        with pytest.raises(UsageError):
            AuditWebhook(
                address, ingestion, certificate=certificate, key=certificate, token_file=token
            )
    spool.close()
