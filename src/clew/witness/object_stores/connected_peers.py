"""The peers of a Pod: what it connects to besides object stores.

ip://ADDRESS               an address; the audit witness says whose it was at the time
service://NAMESPACE/NAME   a Service, where the host name says which: NAME, NAME.NAMESPACE, or more
http://HOST                any other host that a request names
https://HOST               the host that a client asked for when it opened its own TLS
"""

import ipaddress
import re
from collections.abc import Iterator

from clew.documents.ids import Locator
from clew.prov.cluster.locators import address_locator, service_locator
from clew.witness.object_stores.access_log import LogLine

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_-]{1,63})*\.?")
_SERVICE = re.compile(r"([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.svc(\..*)?")
_SHORT = re.compile(r"([a-z0-9-]{1,63})(?:\.([a-z0-9-]{1,63}))?")


def find_peers(line: LogLine, namespace: str) -> Iterator[Locator]:
    """The peer's address, then its name if the client gave one. `namespace`: of the client."""
    address = peer_address(line.peer)
    if address is not None:
        yield address
    name = _find_named_peer(line, namespace, address)
    if name is not None:
        yield name


def peer_address(peer: str | None) -> Locator | None:
    """`10.0.0.1:80` or `[fd00::1]:80`, without the port."""
    host = (peer or "").rpartition(":")[0]
    return address_locator(host.removeprefix("[").removesuffix("]"))


def _find_named_peer(line: LogLine, namespace: str, address: Locator | None) -> Locator | None:
    scheme, text = ("https", line.sni) if line.kind == "tls" else ("http", line.host)
    host, port = _split_port((text or "").lower())
    if not _HOST.fullmatch(host) or _is_address(host):
        return None
    host = host.removesuffix(".")
    service = _SERVICE.fullmatch(host) or _find_short_name(host, address)
    if service is not None:
        return service_locator(service[2] or namespace, service[1])
    return Locator(f"{scheme}://{host}{port}")


def _find_short_name(host: str, address: Locator | None) -> re.Match[str] | None:
    """A name that is looked up in the cluster first: of a Service in the client's namespace, or in
    another one. `example.org` has the same form, but its address is a public one."""
    short = _SHORT.fullmatch(host)
    if short is None or address is None or host == "localhost":
        return None
    found = ipaddress.ip_address(address.removeprefix("ip://"))
    is_inside = found.is_private and not found.is_loopback
    return short if short[2] is None or is_inside else None


def _split_port(text: str) -> tuple[str, str]:
    host, colon, port = text.rpartition(":")
    return (host, f":{port}") if colon and re.fullmatch(r"[0-9]{1,5}", port) else (text, "")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
