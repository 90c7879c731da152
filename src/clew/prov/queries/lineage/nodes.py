"""Build the nodes of the `trace` document, with everything that a tree or a page shows."""

import json
import re
from collections.abc import Container
from functools import lru_cache
from typing import Any

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Locator, VersionId
from clew.documents.lineage.lineage import Node, OwnerPackage, SameContent
from clew.prov.graph import Graph
from clew.prov.package_urls import describe_package
from clew.prov.queries.cluster.cluster_nodes import ClusterNode
from clew.prov.queries.cluster.lineage_nodes import ClusterFields, describe_cluster_fields, label_of
from clew.prov.queries.formats import (
    STREAM,
    execution_id,
    locator_kind,
    path_fields,
    process_id,
    version_id,
)
from clew.prov.queries.lineage.content_links import Link
from clew.prov.queries.lineage.lineage_sql import LineageQueries, Version
from clew.prov.queries.notes import find_current_source, find_sources
from clew.prov.queries.show import classify_locator
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_text

_DEVICE = re.compile(r"file://[^/]*/(?:dev/(?!shm/)|proc/|sys/)")
"""Kernel file systems: their entries are not files."""


def version_ref(version: Version) -> VersionId:
    """A version's id in the user's words."""
    return version_id(version.number, version.locator, version.ordinal)


def is_of_program(version: Version) -> bool:
    """Whether it is an installed file: one of a package or the system that no recorded process
    made."""
    if version.package is not None or _DEVICE.match(version.locator):
        return True
    kind = classify_locator(version.locator, None, version.mode) if version.found else ""
    return kind in ("package", "system")


def build_file_nodes(
    graph: Graph,
    steps: LineageQueries,
    versions: dict[int, Version],
    links: dict[int, Link],
    *,
    made: Container[int],
) -> tuple[list[Node], dict[int, str]]:
    """`made`: the versions that an activity among the nodes made, also if it is an execution."""
    changed = steps.changed_outside(
        key for key, version in versions.items() if version.found and key not in made
    )
    sources = find_sources(graph, versions.values())
    candidates = steps.versions(c.key for link in links.values() for c in link.candidates)
    nodes = []
    names: dict[int, str] = {}
    for key, version in versions.items():
        shown = path_fields(version.locator)
        names[key] = id_ = version_ref(version)
        nodes.append(
            Node(
                id=id_,
                kind=locator_kind(version.locator),
                label=label_of(version.locator),
                **shown,
                locator=version.locator,
                execution=execution_id(version.number),
                version=id_,
                found=version.found and not (key in made or version.locator.startswith(STREAM)),
                at=from_nanoseconds(version.at),
                digest=digest_text(version.digest),
                size=version.size,
                stored=bool(version.stored),
                class_=classify_locator(version.locator, version.package, version.mode),
                package=_owner_package(version.package),
                changed_outside=key in changed,
                source=sources.get(key),
                made_elsewhere=bool(version.made_elsewhere),
                same_content=describe_link(links.get(key), candidates),
            )
        )
    return nodes, names


@lru_cache(maxsize=4096)
def _owner_package(url: str | None) -> OwnerPackage | None:
    try:
        found = describe_package(url, None) if url else None
    except ValueError:  # a newer witness may know package URLs that this one cannot read
        found = None
    if found is None:
        return None
    manager, name, version = (str(found[key]) for key in ("manager", "name", "version"))
    return OwnerPackage(manager=manager, name=name, version=version)


def describe_link(link: Link | None, versions: dict[int, Version]) -> tuple[SameContent, ...]:
    """The earlier versions with the same bytes, the likeliest first."""
    if link is None:
        return ()
    return tuple(
        SameContent(
            version=version_ref(versions[candidate.key]),
            execution=execution_id(versions[candidate.key].number),
            **path_fields(candidate.locator),
            made=candidate.made,
            strength=link.strength,
            member=candidate.member,
        )
        for candidate in link.candidates
    )


def build_activity_node(
    row: tuple[Any, ...], hidden: int, cluster_node: ClusterNode | None = None
) -> Node:
    _, execution, number, uid, command, exe, cwd, at, kind, name, elsewhere, whole, facets = row
    words = json.loads(command)
    return Node(
        id=execution_id(execution) if whole else process_id(execution, number, uid),
        kind=kind,
        label=cluster_node.label if cluster_node else name or " ".join(words) or exe or uid,
        name=name,
        command=tuple(words),
        exe=exe,
        cwd=cwd,
        execution=execution_id(execution),
        started=from_nanoseconds(at),
        hidden=hidden,
        made_elsewhere=bool(elsewhere),
        **(describe_cluster_fields(cluster_node) or _describe_task_pod(facets)),
    )


def _describe_task_pod(facets: str | None) -> ClusterFields:
    """Where a task of a pipeline ran as a Pod. `facets`: of the process that stands for the Pod."""
    found = json.loads(facets) if facets else {}
    where = found.get("task_pod") if isinstance(found, dict) else None
    if not isinstance(where, dict):
        return {}
    fields: ClusterFields = {}
    if isinstance(node := where.get("node"), str):
        fields["node"] = node
    if isinstance(placement := where.get("placement"), str):
        fields["placement"] = placement
    return fields


def build_unrecorded_node(
    graph: Graph, steps: LineageQueries, target: Target, link: Link | None
) -> Node:
    """A file as it is now, which no execution left or found like this."""
    locator = target.locator or Locator("")
    candidates = steps.versions(c.key for c in link.candidates) if link else {}
    shown = path_fields(locator)
    return Node(
        id=target.label,
        kind="file",
        label=shown["path"],
        **shown,
        locator=locator,
        execution=None,
        version=None,
        found=True,
        digest=target.digest,
        size=None,
        stored=False,
        changed_outside=target.known_place,
        source=find_current_source(graph, locator, target.digest),
        made_elsewhere=False,
        same_content=describe_link(link, candidates),
    )
