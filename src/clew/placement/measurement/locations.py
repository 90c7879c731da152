"""The locations that an administrator configures: names with the addresses that nodes probe.

An address is `HOST:PORT`, which is probed by TCP connections, or `HOST`, by ICMP echo. Only
administrators name addresses, since every node connects to them.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple

MOST_LOCATIONS = 200
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What the value of a Pod's label may be, so that Pods can name each location."""
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?\.?")


class ProbeAddress(NamedTuple):
    """Without a port, the host is probed by ICMP echo."""

    host: str
    port: int | None = None


class Locations(NamedTuple):
    addresses: Mapping[str, ProbeAddress]
    problems: tuple[str, ...]
    """Sentences about the entries that are no locations."""


def parse_locations(entries: Mapping[str, str]) -> Locations:
    addresses: dict[str, ProbeAddress] = {}
    problems = []
    for name, text in sorted(entries.items()):
        address = parse_probe_address(text.strip())
        if not NAME.fullmatch(name):
            problems.append(f"{name[:80]!r} is not the name of a location")
        elif address is None:
            problems.append(f"location {name}: {text.strip()[:80]!r} is not HOST:PORT or HOST")
        elif len(addresses) == MOST_LOCATIONS:
            problems.append(f"location {name}: there are more than {MOST_LOCATIONS}")
        else:
            addresses[name] = address
    return Locations(addresses, tuple(problems))


def parse_probe_address(text: str) -> ProbeAddress | None:
    """`HOST:PORT`, `HOST`, `[IPV6]:PORT` or `IPV6`; None for anything else."""
    if _is_ip(text):
        return ProbeAddress(text)
    host, separator, digits = text.rpartition(":")
    if not separator:
        return ProbeAddress(text) if _HOST.fullmatch(text) else None
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    valid = _is_ip(host) if bracketed else bool(_HOST.fullmatch(host))
    if not valid or not re.fullmatch("[0-9]{1,5}", digits) or not 0 < int(digits) < 65_536:
        return None
    return ProbeAddress(host, int(digits))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
