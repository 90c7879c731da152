"""The options of `clew scheduler`: nobody but kube-scheduler can ask."""

from pathlib import Path

import pytest

from clew.errors import UsageError
from clew.kube.scheduler.options import Address, Options, parse_address

FILE = Path("/any")


def test_addresses() -> None:
    assert parse_address("127.0.0.1:8888", "--listen") == Address("127.0.0.1", 8888)
    assert str(parse_address("[::1]:0", "--listen")) == "[::1]:0"
    for wrong in ("8888", "host:", ":80", "host:99999", "host:-1"):
        with pytest.raises(UsageError):
            parse_address(wrong, "--listen")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_loopback_address_needs_no_certificate(host: str) -> None:
    Options(Address(host, 1))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"certificate": FILE, "key": FILE},
        {"certificate": FILE, "client_ca": FILE},
        {"client_ca": FILE},
    ],
)
def test_another_address_needs_certificates_of_both_sides(given: dict[str, Path]) -> None:
    with pytest.raises(UsageError):
        Options(Address("0.0.0.0", 1), **given)
    Options(Address("0.0.0.0", 1), certificate=FILE, key=FILE, client_ca=FILE)
