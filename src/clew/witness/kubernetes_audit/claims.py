"""Claims: the volume each is bound to, and where that volume's bytes are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import CLAIM, object_uid
from clew.prov.cluster.facets import Backing, ClaimFacet, write_facet
from clew.prov.cluster.locators import claim_locator, volume_locator
from clew.prov.events import Alias, AnyEvent, Ended, Started
from clew.witness.kubernetes_audit.fold_state import FoldState, KnownClaim, remember
from clew.witness.kubernetes_audit.kubernetes_time import end_of_second
from clew.witness.kubernetes_audit.object_types import Claim, Volume, VolumeSpec, is_name


def describe_claim(
    state: FoldState, uid: Uid, claim: Claim, *, at: int, agent: str, removed: bool
) -> Iterator[AnyEvent]:
    """`agent`: who created it, where this answer says so."""
    created = claim.metadata.creation_timestamp
    yield from _describe(
        state,
        uid,
        KnownClaim(
            at=end_of_second(created) if created else at,
            agent=agent,
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            volume=claim.spec.volume_name,
            storage_class=claim.spec.storage_class_name or "",
        ),
    )
    if removed:
        yield Ended(execution=uid, n=0, at=at, activity=uid, status=0)
        state.claims.pop(uid, None)


def describe_volume(state: FoldState, volume: Volume) -> Iterator[AnyEvent]:
    """What a PersistentVolume says about the claim that it is bound to."""
    claim = volume.spec.claim_ref
    uid = None if claim is None else object_uid(claim.uid)
    created = volume.metadata.creation_timestamp
    if claim is None or uid is None or created is None or volume.metadata.deletion_timestamp:
        return
    yield from _describe(
        state,
        uid,
        KnownClaim(
            at=end_of_second(created) if uid not in state.claims else 0,
            namespace=claim.namespace,
            name=claim.name,
            volume=volume.metadata.name,
            storage_class=volume.spec.storage_class_name,
            backing=_find_backing(volume.spec),
        ),
    )


def _describe(state: FoldState, uid: Uid, found: KnownClaim) -> Iterator[AnyEvent]:
    if not is_name(found.namespace) or not is_name(found.name):
        return
    claim = _merge(state.claims.get(uid, KnownClaim()), found)
    remember(state.claims, uid, claim)
    yield Started(
        execution=uid,
        n=0,
        at=claim.at,
        activity=uid,
        kind=CLAIM,
        agent=claim.agent or None,
        name=f"{claim.namespace}/{claim.name}",
        facets=write_facet(
            ClaimFacet(
                namespace=claim.namespace,
                name=claim.name,
                volume=claim.volume,
                storage_class=claim.storage_class,
                backing=claim.backing,
            )
        ),
    )
    if is_name(claim.volume):
        yield Alias(
            execution=uid,
            n=0,
            at=claim.at,
            a=claim_locator(claim.namespace, claim.name),
            b=volume_locator(claim.namespace, claim.name, claim.volume),
        )


def _merge(known: KnownClaim, found: KnownClaim) -> KnownClaim:
    """What is found counts, where it says something."""
    fields = msgspec.structs.asdict(found)
    return msgspec.structs.replace(known, **{name: v for name, v in fields.items() if v})


def _find_backing(spec: VolumeSpec) -> Backing | None:
    """The storage behind a volume, by its type."""
    if spec.csi is not None:
        return Backing(driver=_text(spec.csi, "driver"), handle=_text(spec.csi, "volumeHandle"))
    if spec.nfs is not None:
        return Backing(driver="nfs", server=_text(spec.nfs, "server"), path=_text(spec.nfs, "path"))
    if spec.iscsi is not None:
        server = _text(spec.iscsi, "targetPortal")
        return Backing(driver="iscsi", server=server, handle=_text(spec.iscsi, "iqn"))
    for driver, part in (("local", spec.local), ("hostPath", spec.host_path)):
        if part is not None:
            return Backing(driver=driver, path=_text(part, "path"))
    return None


def _text(part: dict[str, Any], field: str) -> str:
    value = part.get(field)
    return value if isinstance(value, str) else ""
