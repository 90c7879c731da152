"""The certificate of the webhook is renewed in time, and the one before stays trusted."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from clew.agents.sidecars.certificates import (
    AUTHORITIES,
    CERTIFICATE,
    KEY,
    LIFETIME,
    RENEW_BEFORE,
    issue,
    needs_renewal,
)

HOST = "clew-inject.clew-inject.svc"
NOW = datetime(2026, 11, 19, tzinfo=UTC)


def test_it_is_renewed_before_its_end_and_for_another_host() -> None:
    entries = issue(HOST, NOW, {})
    almost = NOW + LIFETIME - RENEW_BEFORE - timedelta(days=1)
    assert not needs_renewal(entries, HOST, almost)
    assert needs_renewal(entries, HOST, almost + timedelta(days=2))
    assert needs_renewal(entries, "other.svc", NOW)


def test_a_secret_without_a_usable_certificate_is_filled() -> None:
    entries = issue(HOST, NOW, {})
    for broken in ({}, {**entries, KEY: b"x"}, {**entries, CERTIFICATE: b""}):
        assert needs_renewal(broken, HOST, NOW)
    assert needs_renewal({**entries, AUTHORITIES: b"junk"}, HOST, NOW)


def test_the_authority_before_stays_trusted_until_its_end() -> None:
    first = issue(HOST, NOW, {})
    second = issue(HOST, NOW + timedelta(days=60), first)
    third = issue(HOST, NOW + timedelta(days=120), second)
    trusted = [x509.load_pem_x509_certificates(one[AUTHORITIES]) for one in (first, second, third)]
    assert [len(one) for one in trusted] == [1, 2, 2]
    assert trusted[0][0] in trusted[1]
    assert trusted[0][0] not in trusted[2]
    expired = issue(HOST, NOW + timedelta(days=365), third)
    assert len(x509.load_pem_x509_certificates(expired[AUTHORITIES])) == 1


def test_a_client_that_trusts_the_authority_accepts_it(tmp_path: Path) -> None:
    entries = issue(HOST, datetime.now(UTC), {})
    for name in (CERTIFICATE, KEY):
        (tmp_path / name).write_bytes(entries[name])
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / CERTIFICATE, tmp_path / KEY)
    client = ssl.create_default_context(cadata=entries[AUTHORITIES].decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=HOST)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert asking.version() == "TLSv1.3"
