"""Connections to anything but object stores: a Pod used what answered it.

A peer is used once a minute at most, as a version of its address: whose address it was at that
time is known to the audit witness. TLS that the client opened itself cannot be read, which is a
gap that names the peer.
"""

from collections.abc import Iterator

import msgspec

from clew.documents.ids import Locator
from clew.prov.events import AnyEvent, Used, Version
from clew.witness.object_stores.access_log import LogLine
from clew.witness.object_stores.connected_peers import find_peers
from clew.witness.object_stores.pod_context import PodContainer, PodContext
from clew.witness.object_stores.summaries import MINUTE

MAX_PEERS = 2000
_TLS = "requests inside of a TLS connection"
_TLS_WHY = "the client opened TLS itself, so the sidecar cannot read them"
_MANY = "further peers of the network"


class NetworkState(msgspec.Struct):
    """When each peer was reported last, by activity and locator: the minute."""

    peers: dict[str, int] = {}
    gaps: list[str] = []
    too_many: int = 0
    """The minute in which there were last more peers than are counted."""


def fold_connection(
    line: LogLine, context: PodContext, by: PodContainer, state: NetworkState
) -> Iterator[AnyEvent]:
    locators = list(find_peers(line, context.namespace))
    for locator in locators:
        yield from _use_peer(line, locator, context, by, state)
    if line.kind == "tls" and locators:
        yield from _gap_once(line, locators[-1], context, by, state)


def _use_peer(
    line: LogLine, locator: Locator, context: PodContext, by: PodContainer, state: NetworkState
) -> Iterator[AnyEvent]:
    minute = line.began // MINUTE
    name = f"{by.uid} {locator}"
    if state.peers.get(name) == minute:
        return
    if name not in state.peers and len(state.peers) >= MAX_PEERS:
        for other in [one for one, last in state.peers.items() if last < minute]:
            del state.peers[other]
        if len(state.peers) >= MAX_PEERS and state.too_many == minute:
            return
        if len(state.peers) >= MAX_PEERS:
            state.too_many = minute
            why = f"there were more than {MAX_PEERS} in a minute"
            yield context.report_gap(by, line.began, _MANY, why)
            return
    state.peers[name] = minute
    yield Used(
        execution=context.uid,
        n=0,
        at=line.began,
        activity=by.uid,
        version=Version(locator, context.uid, minute),
        how="connect",
    )
    if by.uid == context.sidecar.uid:
        yield from context.pass_on(line.began, to_containers=True)


def _gap_once(
    line: LogLine, locator: Locator, context: PodContext, by: PodContainer, state: NetworkState
) -> Iterator[AnyEvent]:
    name = f"{by.uid} {locator}"
    if name not in state.gaps and len(state.gaps) < MAX_PEERS:
        state.gaps.append(name)
        yield context.report_gap(by, line.began, _TLS, _TLS_WHY, locator)
