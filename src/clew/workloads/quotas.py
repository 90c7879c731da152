"""How much of a namespace's quota is used. Only a cluster has quotas."""

from collections.abc import Sequence

from clew.documents.workloads.workload import Quota, QuotaUse
from clew.errors import UsageError
from clew.kube.objects import Object, dig
from clew.workloads.forms.quantities import parse_quantity


def read_quota(namespace: str, quotas: Sequence[Object]) -> Quota | None:
    """The resources that the ResourceQuotas of a namespace limit, fullest first; None without any.

    If several limit the same resource, the one that leaves the smallest share counts.
    """
    found: dict[str, QuotaUse] = {}
    for quota in quotas:
        limits = dig(quota, "status", "hard") or {}
        for resource, limit in limits.items():
            use = _use(resource, dig(quota, "status", "used", resource) or "0", limit)
            if use is not None and use.share >= getattr(found.get(resource), "share", 0):
                found[resource] = use
    if not found:
        return None
    uses = sorted(found.values(), key=lambda use: (-use.share, use.resource))
    return Quota(namespace=namespace, uses=tuple(uses))


def _use(resource: str, used: str, limit: str) -> QuotaUse | None:
    try:
        part, whole = (parse_quantity(text, resource).value for text in (used, limit))
    except UsageError:
        return None
    share = float(part / whole) if whole > 0 else 1.0
    return QuotaUse(resource=resource, used=used, limit=limit, share=share)
