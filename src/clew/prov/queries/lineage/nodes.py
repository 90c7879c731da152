"""What a walk through the graph draws: the nodes of `trace`, with all a tree or a page shows."""

from __future__ import annotations

import json
from typing import Any

from clew.prov.graph import Graph
from clew.prov.queries.formats import execution_id, kind_of, moment, place, process_id, version_id
from clew.prov.queries.lineage.steps import Steps, Version
from clew.prov.queries.notes import source_now, sources_of
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_text


def version_ref(version: Version) -> str:
    """A version's id in the user's words."""
    return version_id(version.number, version.locator, version.ordinal)


def file_nodes(
    graph: Graph, steps: Steps, versions: dict[int, Version]
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    changed = steps.changed_outside(key for key, version in versions.items() if version.found)
    sources = sources_of(graph, versions.values())
    nodes = []
    names: dict[int, str] = {}
    for key, version in versions.items():
        shown = place(version.locator)
        names[key] = version_ref(version)
        nodes.append(
            {
                "id": names[key],
                "kind": kind_of(version.locator),
                "label": shown["path"],
                **shown,
                "locator": version.locator,
                "execution": execution_id(version.number),
                "version": names[key],
                "found": version.found and kind_of(version.locator) != "stream",
                "digest": digest_text(version.digest),
                "size": version.size,
                "stored": bool(version.stored),
                "changed_outside": key in changed,
                "source": sources.get(key),
                "made_elsewhere": bool(version.made_elsewhere),
            }
        )
    return nodes, names


def activity_node(row: tuple[Any, ...], hidden: int) -> dict[str, Any]:
    _, execution, number, uid, command, exe, cwd, at, kind, name, elsewhere = row
    words = json.loads(command)
    return {
        "id": process_id(execution, number, uid),
        "kind": kind,
        "label": name or " ".join(words) or exe or uid,
        "name": name,
        "command": words,
        "exe": exe,
        "cwd": cwd,
        "execution": execution_id(execution),
        "started": moment(at),
        "hidden": hidden,
        "made_elsewhere": bool(elsewhere),
    }


def unrecorded_node(graph: Graph, target: Target) -> dict[str, Any]:
    """A file as it is now, which no execution left or found like this."""
    locator = target.locator or ""
    shown = place(locator)
    return {
        "id": target.label,
        "kind": "file",
        "label": shown["path"],
        **shown,
        "locator": locator,
        "execution": None,
        "version": None,
        "found": True,
        "digest": target.digest,
        "size": None,
        "stored": False,
        "changed_outside": True,
        "source": source_now(graph, locator, target.digest),
        "made_elsewhere": False,
    }
