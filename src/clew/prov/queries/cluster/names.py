"""Which volume, Pod or address a name of the cluster stood for at a time.

Names are used again: a deleted claim is created anew with another volume, and an address goes to
the next Pod. Only the execution that had a name may say so; what a record of a command says about
names of the cluster does not count.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from clew.documents.ids import Locator
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.row_keys import location_key

CLAIM_LOCATOR: Final = re.compile(r"pvc://[^/@]+/[^/@]+")
"""A claim as a whole; a file has its volume behind the claim."""
VOLUME_FILE: Final = re.compile(r"(pvc://[^/@]+/[^/@]+)@([^/]+)(?:/.*)?", re.DOTALL)
IMAGE: Final = "image://"
OBJECT_SCHEMES: Final = ("configmap://", "secret://", "pod://")
"""Objects whose versions are made by requests, which have no activity below them."""

_HAS_PODS = """
SELECT 1 FROM started s JOIN execution x ON x.id = s.id WHERE s.kind = 'pod' AND x.project = ?
LIMIT 1
"""
_BINDINGS = """
SELECT a.a, a.at, l.locator FROM alias a JOIN started s ON s.id = a.execution
JOIN location l ON l.id = a.b WHERE a.a IN ({}) AND s.kind = 'claim'
"""
_HOLDERS = """
SELECT a.at, a.execution, (SELECT min(e.at) FROM ended e WHERE e.activity = a.execution)
FROM alias a JOIN started s ON s.id = a.execution
WHERE a.a = ? AND s.kind = 'pod' AND a.at <= ? ORDER BY a.at DESC LIMIT 1
"""


def has_cluster(graph: Graph) -> bool:
    """Whether any Pod was observed. Without one, lineage asks nothing more."""
    return graph.connection.row(_HAS_PODS, (graph.project,)) is not None


def claim_of(locator: str) -> Locator | None:
    """The claim of a file on a volume, or of a volume as a whole."""
    if match := VOLUME_FILE.fullmatch(locator):
        return Locator(match[1])
    return Locator(locator) if CLAIM_LOCATOR.fullmatch(locator) else None


def volume_of(locator: str) -> Locator | None:
    """The volume, `pvc://NAMESPACE/CLAIM@VOLUME`, of a file on it."""
    match = VOLUME_FILE.fullmatch(locator)
    return Locator(f"{match[1]}@{match[2]}") if match else None


class ClaimBindings:
    """The volumes that claims were bound to, each asked for once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._bound: dict[Locator, tuple[list[int], list[Locator]]] = {}

    def load(self, claims: Iterable[Locator]) -> None:
        missing = {
            location_key(self._graph.project_uid, claim): claim
            for claim in claims
            if claim not in self._bound
        }
        rows: dict[Locator, list[tuple[int, Locator]]] = {claim: [] for claim in missing.values()}
        for key, at, volume in self._graph.connection.rows_in(_BINDINGS, missing):
            if volume.startswith(f"{missing[key]}@"):
                rows[missing[key]].append((at, volume))
        for claim, found in rows.items():
            found.sort()
            self._bound[claim] = [at for at, _ in found], [volume for _, volume in found]

    def volume_at(self, claim: Locator, at: int) -> Locator:
        """The volume at a time; before the first binding, the first one; if no binding is known,
        the claim itself."""
        if claim not in self._bound:
            self.load([claim])
        times, volumes = self._bound[claim]
        return volumes[max(bisect_right(times, at) - 1, 0)] if volumes else claim


def find_holder(graph: Graph, name: Locator, at: int | None) -> int | None:
    """The Pod that had an address or a name at a time; None: the one that had it last."""
    key = location_key(graph.project_uid, name)
    row = graph.connection.row(_HOLDERS, (key, FOREVER if at is None else at))
    if row is None or (at is not None and row[2] is not None and row[2] < at):
        return None
    return int(row[1])
