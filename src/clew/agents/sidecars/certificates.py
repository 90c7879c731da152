"""The certificate of the webhook: when it is renewed, and how it is made.

Each certificate has an authority of its own, whose key is forgotten at once. The API server trusts
the new authority and the one before, so that no request fails while several replicas change over.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=90)
RENEW_BEFORE = timedelta(days=30)
AUTHORITIES, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
_MAX_AUTHORITIES = 2
_CLOCK_SKEW = timedelta(minutes=10)


def needs_renewal(entries: Mapping[str, bytes], host: str, now: datetime) -> bool:
    """Whether a Secret with these entries has no certificate for the host that lasts."""
    try:
        certificate = x509.load_pem_x509_certificate(entries[CERTIFICATE])
        serialization.load_pem_private_key(entries[KEY], None)
        x509.load_pem_x509_certificates(entries[AUTHORITIES])
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (KeyError, ValueError, x509.ExtensionNotFound):
        return True
    ends = certificate.not_valid_after_utc
    return host not in names.value.get_values_for_type(x509.DNSName) or now > ends - RENEW_BEFORE


def issue(host: str, now: datetime, before: Mapping[str, bytes]) -> dict[str, bytes]:
    """The entries of the Secret with a new certificate. `before`: the entries it has."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer, subject = _name(f"authority of {host}"), _name(host)
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(issuer, subject, key.public_key(), now)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    authorities = [authority, *_valid_authorities(before, now)][:_MAX_AUTHORITIES]
    return {
        AUTHORITIES: b"".join(_pem(one) for one in authorities),
        CERTIFICATE: _pem(certificate),
        KEY: key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    }


def utc_now() -> datetime:
    return datetime.now(UTC)


def _valid_authorities(entries: Mapping[str, bytes], now: datetime) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(entries[AUTHORITIES])
    except (KeyError, ValueError):
        return []
    return [one for one in found if one.not_valid_after_utc > now]


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
