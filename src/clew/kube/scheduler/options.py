"""The options of `clew scheduler`."""

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from clew.errors import UsageError


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Options:
    """`listen`: where kube-scheduler asks; `metrics`: another address for /healthz and /metrics."""

    listen: Address
    metrics: Address | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    """Who asks must have a certificate of this authority."""
    locations: Path | None = None
    """The directory of the locations that agents measure; without it, only labels count."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("--certificate and --key belong together")
        if self.client_ca is not None and self.certificate is None:
            raise UsageError("--client-ca needs --certificate and --key")
        if self.client_ca is None and not _is_loopback(self.listen.host):
            raise UsageError(
                f"--listen {self.listen} needs --certificate, --key and --client-ca: others than "
                "kube-scheduler could ask there",
                hint="run it beside kube-scheduler, with --listen 127.0.0.1:8888",
            )


def parse_address(text: str, option: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option} {text} is not HOST:PORT", hint=f"{option} 127.0.0.1:8888")
    return Address(host.strip("[]"), int(port))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
