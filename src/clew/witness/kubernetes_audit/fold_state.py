"""What the fold remembers between audit events. It is kept with the checkpoint of the log.

Few facts need more than one audit event: only the creation of an object says who asked for it, a
claim and its volume are two objects, and an answer lists the Pods of a Service again and again. All
else is in each answer, so an agent that has lost this state loses little.
"""

from collections.abc import MutableMapping
from typing import TypeVar

import msgspec

from clew.documents.ids import Uid
from clew.prov.cluster.facets import Backing

MAX_OBJECTS = 200_000
"""Entries of each kind; beyond it, the oldest are forgotten."""

_Value = TypeVar("_Value")


class KnownClaim(msgspec.Struct, omit_defaults=True):
    """What is known of a claim, from itself and from its volume."""

    at: int = 0
    agent: str = ""
    namespace: str = ""
    name: str = ""
    volume: str = ""
    storage_class: str = ""
    backing: Backing | None = None


class FoldState(msgspec.Struct, omit_defaults=True):
    creators: dict[Uid, str] = {}
    """The users who created the objects that exist."""
    claims: dict[Uid, KnownClaim] = {}
    mirrors: dict[Uid, Uid] = {}
    """The uids of static Pods by the uids of the objects that show them."""
    endpoints: dict[str, list[Uid]] = {}
    """The Pods that each EndpointSlice listed last, by `NAMESPACE/SERVICE/UID`."""
    gaps: list[str] = []
    """The resources of which a gap was reported already."""


def remember(entries: MutableMapping[Uid, _Value], uid: Uid, value: _Value) -> None:
    """Add an entry, the newest."""
    entries.pop(uid, None)
    entries[uid] = value
    if len(entries) > MAX_OBJECTS:
        del entries[next(iter(entries))]
