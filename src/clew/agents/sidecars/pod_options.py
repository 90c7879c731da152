"""What the annotations of a Pod ask of its sidecar. They are untrusted: each value is checked."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from clew.agents.sidecars.envoy_config import Upstream
from clew.agents.sidecars.pod_contexts import MAX_HOSTS, split_list
from clew.agents.sidecars.traffic_sidecar_names import CERTIFICATES, STORES, TLS_STORES
from clew.errors import UsageError

_HOST = re.compile(
    r"(?=.{1,253}(?::|$))[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
    r"(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*(?::(?P<port>[0-9]{1,5}))?"
)
_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class PodOptions(NamedTuple):
    tls_hosts: tuple[Upstream, ...] = ()
    certificates: str | None = None
    """The name of a ConfigMap."""


def read_options(annotations: Mapping[str, str]) -> PodOptions:
    """Raises UsageError, naming the annotation, for a value that it cannot have."""
    list(_read_hosts(annotations, STORES))
    certificates = annotations.get(CERTIFICATES)
    if certificates is not None and not _OBJECT_NAME.fullmatch(certificates):
        raise _error(CERTIFICATES, certificates, "the name of a ConfigMap")
    return PodOptions(tuple(_read_hosts(annotations, TLS_STORES)), certificates)


def _read_hosts(annotations: Mapping[str, str], name: str) -> Iterator[Upstream]:
    hosts = split_list(annotations.get(name, ""))
    if len(hosts) > MAX_HOSTS or len(set(hosts)) < len(hosts):
        raise _error(name, f"{len(hosts)} hosts", f"at most {MAX_HOSTS} different hosts")
    for host in hosts:
        match = _HOST.fullmatch(host)
        port = int((match and match["port"]) or 443)
        if match is None or not 0 < port < 65536:
            raise _error(name, host, "a list of host names, with commas between them")
        yield Upstream(host.partition(":")[0], port)


def _error(name: str, value: str, expected: str) -> UsageError:
    return UsageError(f"the annotation {name} is {value[:80]!r}, and not {expected}")
