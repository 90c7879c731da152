"""How two Pods differ: images, commands, variables, ConfigMaps, inputs, outputs, nodes."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from clew.documents.comparisons.differences import Change, Difference, ImageChange, PodDiff, Verdict
from clew.documents.ids import Digest, ExecutionId, Locator
from clew.prov.cluster.ancestry_types import AncestorPod, FoundVersion, MadeVersion
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import load_pods
from clew.prov.queries.cluster.cluster_nodes import read_any_facet
from clew.prov.queries.cluster.lineage_nodes import label_of
from clew.prov.queries.cluster.names import VOLUME_FILE
from clew.prov.queries.formats import execution_id, path_fields
from clew.prov.queries.lineage.lineage_sql import FOREVER
from clew.prov.queries.targets import Target
from clew.prov.row_keys import activity_key

_OBJECTS = ("configmap://", "secret://")
_CONTAINERS = """
SELECT name, kind, image, command, environment, facets FROM started
WHERE execution = ? AND kind = 'container' ORDER BY at
"""
_NODE = """
SELECT facets FROM started WHERE kind = 'node' AND name = ? AND at <= ? ORDER BY at DESC LIMIT 1
"""
_KIND = "SELECT kind FROM started WHERE id = ?"
_HARDWARE = ("cpu", "gpu", "driver", "cuda", "cudnn", "memory")


class _Container(NamedTuple):
    image: str | None
    command: list[str]
    environment: dict[str, str | None]


def is_pod(graph: Graph, target: Target) -> bool:
    if target.kind != "execution" or len(target.keys) != 1:
        return False
    row = graph.connection.row(_KIND, (target.keys[0],))
    return row is not None and row[0] == "pod"


def diff_pods(graph: Graph, a: Target, b: Target) -> PodDiff:
    """How the Pod `b` differs from the Pod `a`; both are targets for which `is_pod` holds."""
    found = {pod.uid: pod for pod in load_pods(graph, (*a.keys, *b.keys))}
    keys = {activity_key(graph.project_uid, uid): pod for uid, pod in found.items()}
    one, other = keys[a.keys[0]], keys[b.keys[0]]
    mine, theirs = (_load_containers(graph, target.keys[0]) for target in (a, b))
    outputs = _diff_files(one.outputs, other.outputs)
    return PodDiff(
        a=_id(a),
        b=_id(b),
        pods=(f"{one.namespace}/{one.name}", f"{other.namespace}/{other.name}"),
        verdict=_judge(outputs),
        images=tuple(_diff_images(one, other, mine, theirs)),
        command={
            name: Change(a=before, b=after)
            for name, before, after in _pair(mine, theirs, lambda c: c.command)
        },
        environment={
            name: changes
            for name, before, after in _pair(mine, theirs, lambda c: c.environment)
            if (changes := _diff_values(before or {}, after or {}))
        },
        config_maps=_diff_files(_objects(one.inputs), _objects(other.inputs)),
        inputs=_diff_files(_files(one.inputs), _files(other.inputs)),
        outputs=outputs,
        hardware=_diff_values(
            *(load_hardware(graph, pod.node, at=pod.ended) for pod in (one, other))
        ),
    )


def _id(target: Target) -> ExecutionId:
    return execution_id(target.execution or 0)


def _load_containers(graph: Graph, pod: int) -> dict[str, _Container]:
    """By name; of a container that was started again, the last start."""
    found: dict[str, _Container] = {}
    for name, kind, image, command, environment, facets in graph.connection.rows(
        _CONTAINERS, (pod,)
    ):
        known = getattr(read_any_facet(facets, kind), "name", None) or name or ""
        found[known] = _Container(image, json.loads(command), json.loads(environment))
    return found


def _pair(
    a: Mapping[str, _Container], b: Mapping[str, _Container], part: Any
) -> Iterable[tuple[str, Any, Any]]:
    """(name, value in a, value in b) of the containers in which a part differs."""
    for name in dict.fromkeys((*a, *b)):
        before = part(a[name]) if name in a else None
        after = part(b[name]) if name in b else None
        if before != after:
            yield name, before, after


def _diff_images(
    a: AncestorPod, b: AncestorPod, mine: Mapping[str, _Container], theirs: Mapping[str, _Container]
) -> Iterable[ImageChange]:
    for name in dict.fromkeys((*mine, *theirs)):
        before, after = a.images.get(name), b.images.get(name)
        named = [side[name].image if name in side else None for side in (mine, theirs)]
        if (before, named[0]) != (after, named[1]):
            yield ImageChange(container=name, a=before, b=after, name_a=named[0], name_b=named[1])


def _diff_values(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Change]:
    return {
        name: Change(a=a.get(name), b=b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name)
    }


def _objects(inputs: Iterable[FoundVersion]) -> list[FoundVersion]:
    return [found for found in inputs if found.locator.startswith(_OBJECTS)]


def _files(inputs: Iterable[FoundVersion]) -> list[FoundVersion]:
    return [found for found in inputs if not found.locator.startswith(_OBJECTS)]


def _diff_files(
    a: Iterable[FoundVersion | MadeVersion], b: Iterable[FoundVersion | MadeVersion]
) -> tuple[Difference, ...]:
    """Files and objects by their places; a claim counts as the same place on any volume."""
    before, after = ({_place(one.locator): one for one in side} for side in (a, b))
    found = []
    for place in sorted(before.keys() | after.keys()):
        one, other = before.get(place), after.get(place)
        if one is None or other is None:
            kind = "extra" if one is None else "missing"
        elif _name_content(one) == _name_content(other):
            continue
        elif None in (_name_content(one), _name_content(other)):
            kind = "unknown"
        else:
            kind = "content"
        found.append(
            Difference(
                **path_fields(place),
                kind=kind,
                a=_name_content(one),
                b=_name_content(other),
            )
        )
    return tuple(found)


def _place(locator: Locator) -> Locator:
    return Locator(label_of(locator)) if VOLUME_FILE.fullmatch(locator) else locator


def _name_content(version: FoundVersion | MadeVersion | None) -> Digest | str | None:
    """What tells contents apart: the digest, else the version that the store of objects gave."""
    return None if version is None else version.digest or version.source


def _judge(outputs: tuple[Difference, ...]) -> Verdict:
    return "different" if outputs else "identical"


def load_hardware(graph: Graph, node: str | None, *, at: int | None) -> dict[str, Any]:
    """What is known of a node at a time (None: now), flat: `cpu.model`."""
    row = graph.connection.row(_NODE, (node, FOREVER if at is None else at))
    facets: dict[str, Any] = json.loads(row[0]) if row else {}
    found: dict[str, Any] = {"node": node}
    for name in _HARDWARE:
        value = facets.get(name)
        if isinstance(value, dict):
            found |= {f"{name}.{key}": one for key, one in value.items()}
        elif value is not None:
            found[name] = value
    return found
