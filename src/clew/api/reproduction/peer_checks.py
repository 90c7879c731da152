"""Whether what Pods talked to is as it was: Services and Pods of the cluster, and other hosts.

Answers are not recorded, so no peer is certainly as it was. What is known of it is compared: that
it is there, and which images and ConfigMaps the Pods behind it have. Another host is asked only for
a connection, and only if the caller allows the network.
"""

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from clew.api.reproduction.preparation import RunOptions
from clew.documents.ids import Locator
from clew.documents.lineage.reproduction import NotReproduced
from clew.prov.cluster.ancestry_types import Peer
from clew.replay.pods.stages import Stage

_IN_CLUSTER = ("service://", "pod://")
_UNKNOWN = "its answers are not recorded"
_HOST = re.compile(r"(https?)://([^:/]+)(?::([0-9]{1,5}))?")
_PORTS = {"http": 80, "https": 443}
_SECONDS = 3.0
_MOST_HOSTS = 50


def check_peers(
    stages: Sequence[Stage],
    options: RunOptions,
    *,
    find_change: Callable[[Peer], str | None] = lambda _: None,
) -> Iterator[NotReproduced]:
    """What is known of each peer now. `find_change` says how a Service or Pod of the cluster
    changed."""
    reachable = _probe_hosts(stages) if options.network else {}
    for stage in stages:
        for peer in stage.pod.peers:
            why = _UNKNOWN
            if peer.locator.startswith(_IN_CLUSTER):
                why = find_change(peer) or _UNKNOWN
            elif not reachable.get(peer.locator, True):
                why = "it cannot be reached from this machine"
            if not options.network:
                why += "; the Pod has no network here: --network"
            yield NotReproduced(what=peer.locator, why=f"Pod {stage.pod.name} talked to it: {why}")


def _probe_hosts(stages: Sequence[Stage]) -> dict[Locator, bool]:
    """Whether other hosts accept a connection. A record may name any number of them."""
    places = {peer.locator: None for stage in stages for peer in stage.pod.peers}
    hosts = [place for place in places if _HOST.fullmatch(place)][:_MOST_HOSTS]
    with ThreadPoolExecutor(max_workers=10) as pool:
        return dict(zip(hosts, pool.map(_accepts_connection, hosts), strict=True))


def _accepts_connection(place: Locator) -> bool:
    match = _HOST.fullmatch(place)
    assert match is not None
    port = int(match[3] or _PORTS[match[1]])
    try:
        socket.create_connection((match[2], port), timeout=_SECONDS).close()
    except (OSError, OverflowError, UnicodeError):
        return False
    return True
