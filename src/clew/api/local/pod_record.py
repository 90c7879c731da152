"""The record of this project, for a reproduction."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from clew.api.local.versions import as_of_nanoseconds
from clew.api.project_context import ProjectState
from clew.documents.ids import Digest, Uid
from clew.documents.lineage.cluster_state import ClusterState
from clew.errors import NotFound
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.cluster.facets import PodFacet
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import find_ancestry, load_pod_facets
from clew.prov.queries.cluster.cluster_state import load_cluster_state
from clew.prov.queries.cluster.pod_diff import load_hardware
from clew.prov.queries.cluster.targets import resolve_cluster_target
from clew.prov.queries.cluster.visibility import (
    check_namespace,
    check_owner,
    withhold_keys,
    withhold_pods,
)
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.queries.targets import Target, resolve_target
from clew.store import Store

_NODE = re.compile(r"e\d{1,15}(?:[.:].+)?", re.DOTALL)
"""The id of a node of a lineage."""


def find_pod_ancestry(graph: Graph, target: str, as_of: int | None) -> Ancestry:
    """`target` may also be the id of a node of a lineage. `as_of`: in nanoseconds. NotFound if
    `target` names nothing of a cluster; NotAllowed if the caller may not see what a plan needs."""
    as_of = None if as_of is None else min(max(as_of, 0), FOREVER)
    is_node = _NODE.fullmatch(target) is not None
    found = _resolve_node(graph, target) if is_node else None
    found = found or resolve_cluster_target(graph, target, as_of=as_of)
    if found is not None and found.kind == "version":
        found = replace(found, keys=withhold_keys(graph, found.keys, found.locator))
    ancestry = None if found is None else find_ancestry(graph, found, as_of=as_of)
    if ancestry is None or (is_node and not ancestry.pods):
        raise NotFound(
            f"{target[:200]} is not a file on a volume, an object or a Pod that was observed",
            hint="clew reproduce pvc://NAMESPACE/CLAIM/PATH, s3://BUCKET/KEY or pod/NS/NAME",
        )
    return withhold_pods(graph, ancestry)


def _resolve_node(graph: Graph, text: str) -> Target:
    return resolve_target(
        graph, text, machine="", locate=lambda path: path, digest_of=lambda _: None
    )


def find_pod_facets(graph: Graph, uids: Iterable[Uid]) -> dict[Uid, PodFacet]:
    facets = load_pod_facets(graph, uids)
    for facet in facets.values():
        check_owner(graph, facet.namespace)
    return facets


class PodRecord:
    """See `clew.api.reproduction.record_reader.RecordReader`."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self._graph = graph
        self._store = store

    def find_ancestry(self, target: str, as_of: datetime | None) -> Ancestry:
        return find_pod_ancestry(self._graph, target, as_of_nanoseconds(as_of))

    def load_facets(self, uids: Iterable[Uid]) -> Mapping[Uid, PodFacet]:
        return find_pod_facets(self._graph, uids)

    def load_hardware(self, node: str | None, at: int | None) -> Mapping[str, Any]:
        return load_hardware(self._graph, node, at=at)

    def read(self, digest: Digest) -> Iterator[bytes]:
        yield from self._store.read(digest)


def load_state(graph: Graph, as_of: datetime | None, namespace: str | None) -> ClusterState:
    """What existed in the cluster at a time, by default now."""
    at = as_of_nanoseconds(as_of)
    check_namespace(graph, namespace)
    return load_cluster_state(graph, time.time_ns() if at is None else at, namespace=namespace)


@contextmanager
def open_pod_record(project: ProjectState) -> Iterator[PodRecord]:
    with Store(project.directory.store) as store:
        yield PodRecord(project.graph, store)
