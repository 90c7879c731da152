"""Resolve what a user typed to a thing of a cluster.

    pvc://NS/CLAIM/PATH            a file, on the volume that the claim was bound to last
    pvc://NS/CLAIM@VOLUME/PATH     a file on this volume
    pvc://NS/CLAIM                 whatever is on the volume
    s3://BUCKET/KEY                an object; ?versionId=ID, ?etag=TAG: this version of it
    hdfs://…, emptydir://…         a file
    pod/NS/NAME, ip://ADDRESS      the Pod that had the name or the address last
    configmap/NS/NAME, secret/NS/NAME   all versions of it; at a time, the one that was valid then
    image@sha256:HEX               an image, by the digest that Pods ran
    pkg:TYPE/NAME[@VERSION]        the files of a package, by its package URL

The last version is meant, or the last one at the time `as_of`. Nothing in a name is a pattern.
"""

# ruff: noqa: S608  (the only names put into SQL here are our own tables and columns)

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from clew.documents.ids import Locator
from clew.errors import NotFound, UsageError
from clew.prov.cluster.locators import image_digest
from clew.prov.graph import Graph
from clew.prov.locators import escape_path
from clew.prov.queries.cluster.cluster_nodes import namespace_of_locator
from clew.prov.queries.cluster.names import (
    find_holder,
)
from clew.prov.queries.cluster.visibility import check_namespace
from clew.prov.queries.cluster.volume_accesses import Volumes
from clew.prov.queries.formats import execution_id, version_id
from clew.prov.queries.lineage.lineage_sql import FOREVER, LineageQueries
from clew.prov.queries.targets import Target
from clew.prov.row_keys import digest_text, location_key

MAX_VERSIONS = 20_000
"""Versions that one name may stand for."""

_OBSERVED: Final = "what agents observe is known a moment later: is one running? clew agent --help"

_OBJECT = re.compile(r"(pod|configmap|secret)(?:/|://)([^/]+)/([^/]+)")
_CLAIM = re.compile(r"(pvc://[^/@]+/[^/@]+)(?:@([^/]+))?(/.*)?", re.DOTALL)
_OBJECT_VERSION = re.compile(r"(s3://.+)\?(versionId|etag)=(.+)", re.DOTALL)
_COLUMNS = """
SELECT v.id, x.number, v.ordinal, l.locator, c.digest, c.size, c.mode, c.mtime, c.stored
FROM version v JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
LEFT JOIN content c ON c.version = v.id
"""
# Found and made versions have an index each. Of what was recorded here, before what others claim.
_LAST = (
    _COLUMNS
    + """
WHERE v.id = (SELECT v.id FROM version v JOIN execution x ON x.id = v.execution
  WHERE v.location = ? AND v.at <= ? AND v.maker {} v.execution AND x.made_elsewhere {} 0
  ORDER BY v.at DESC, v.ordinal DESC LIMIT 1)
"""
)
_ALL = (
    _COLUMNS
    + f"""
WHERE v.location = ? AND v.at <= ? AND v.maker {{}} v.execution AND x.made_elsewhere {{}} 0
ORDER BY v.at DESC LIMIT {MAX_VERSIONS}
"""
)
_GENERATED = (
    _COLUMNS
    + f"""
WHERE v.location = ? AND v.maker = v.execution AND v.at <= ?
AND EXISTS (SELECT 1 FROM generated g WHERE g.version = v.id)
ORDER BY v.at DESC LIMIT {MAX_VERSIONS}
"""
)
_BY_SOURCE = (
    _COLUMNS
    + """
WHERE v.location = ? AND v.maker {} v.execution AND v.at <= ? AND c.source = ?
ORDER BY v.at LIMIT 1
"""
)
_PACKAGED = (
    _COLUMNS
    + f"""
WHERE x.project = ? AND (c.package = ? OR substr(c.package, 1, ?) = ?)
ORDER BY v.at DESC LIMIT {MAX_VERSIONS}
"""
)
_PODS = """
SELECT s.id, x.number FROM started s JOIN execution x ON x.id = s.id
WHERE s.kind = 'pod' AND s.name = ? AND x.project = ? AND s.at <= ? ORDER BY s.at DESC LIMIT 1
"""
_POD = "SELECT number FROM execution WHERE id = ?"


def resolve_cluster_target(graph: Graph, text: str, *, as_of: int | None = None) -> Target | None:
    """What `text` names in a cluster; None if it has another form, or may be another thing."""
    until = FOREVER if as_of is None else as_of
    if graph.is_restricted:
        check_namespace(graph, _namespace_of(text))
    if named := _OBJECT.fullmatch(text):
        kind, namespace, name = named.groups()
        if kind == "pod":
            return _resolve_pod(graph, text, f"{namespace}/{name}", until)
        return _resolve_object(graph, text, Locator(f"{kind}://{namespace}/{name}"), as_of)
    for start, resolve in _RESOLVERS.items():
        if text.startswith(start):
            return resolve(graph, text, until)
    return _resolve_image(graph, text, until) or _resolve_place(graph, text, until)


def _namespace_of(text: str) -> str | None:
    if named := _OBJECT.fullmatch(text):
        return named[2]
    return namespace_of_locator(Locator(text))


def _resolve_image(graph: Graph, text: str, until: int) -> Target | None:
    digest = image_digest(text.removeprefix("image://"))
    if digest is None:
        return None
    return _target(text, _list_versions(graph, Locator(f"image://{digest}"), until))


def _resolve_package(graph: Graph, text: str, until: int) -> Target:
    """Without a version: all versions of the package."""
    prefix = text if "@" in text else f"{text}@"
    exact = (graph.project, text, len(prefix), prefix)
    if "@" in text:
        exact = (graph.project, text, len(text) + 1, f"{text}?")  # with qualifiers
    rows = graph.connection.rows(_PACKAGED, exact)
    if not rows:
        raise NotFound(
            f"no file of the package {text[:200]} was used",
            hint="a package URL is pkg:TYPE/NAME@VERSION: clew show ID --detail",
        )
    return _target(text, rows)


def _resolve_pod(graph: Graph, text: str, name: str, until: int) -> Target | None:
    row = graph.connection.row(_PODS, (name, graph.project, until))
    if row is None and text.startswith("pod/"):
        return None  # perhaps a path
    if row is None:
        raise NotFound(f"no Pod {name[:200]} was observed", hint=_OBSERVED)
    return _pod_target(text, int(row[0]), int(row[1]))


def _resolve_address(graph: Graph, text: str, until: int) -> Target:
    holder = find_holder(graph, Locator(text), None if until == FOREVER else until)
    if holder is None:
        raise NotFound(f"no Pod had the address {text[5:100]} then", hint="give --as-of TIME")
    row = graph.connection.row(_POD, (holder,))
    return _pod_target(text, holder, int(row[0]) if row else 0)


def _pod_target(text: str, key: int, number: int) -> Target:
    return Target("execution", execution_id(number), (key,), execution=number)


def _resolve_object(graph: Graph, text: str, locator: Locator, as_of: int | None) -> Target | None:
    place = location_key(graph.project_uid, locator)
    made = graph.connection.rows(_GENERATED, (place, FOREVER if as_of is None else as_of))
    if made and as_of is not None:
        made = made[:1]
    rows = made or _list_versions(graph, locator, FOREVER if as_of is None else as_of)
    if not rows and "://" not in text:
        return None  # perhaps a path
    return _target(text, rows)


def _resolve_on_volume(graph: Graph, text: str, until: int) -> Target:
    parsed = _CLAIM.fullmatch(text)
    if parsed is None:
        raise UsageError(f"{text[:200]} is not a claim", hint="pvc://NAMESPACE/CLAIM/PATH")
    claim, named, path = Locator(parsed[1]), parsed[2], parsed[3] or ""
    volumes = Volumes(graph, LineageQueries(graph.connection))
    bound = Locator(f"{claim}@{named}") if named else volumes.bindings.volume_at(claim, until)
    if path not in ("", "/"):
        for written in dict.fromkeys((escape_path(os.fsencode(path)), path)):
            if row := _find_last(graph, Locator(f"{bound}{written}"), until):
                return _target(text, [row])
    # No witness saw the file. Only the volume that contains it is known.
    volume = volumes.volume(bound, unwatched=path not in ("", "/"))
    if not volumes.has_writers(volume, before=until, but=0) and not volumes.has_readers(
        volume, after=0, watched=False, but=0
    ):
        raise NotFound(
            f"no Pod that was observed used {text[:200]}",
            hint="clew trace pvc://NAMESPACE/CLAIM shows what is known of a claim",
        )
    return Target("volume", text, (), locator=bound, known_place=path in ("", "/"))


def _resolve_place(graph: Graph, text: str, until: int) -> Target | None:
    """A file or object by its locator, as it is written or as a user types its path."""
    if found := _OBJECT_VERSION.fullmatch(text):
        place = location_key(graph.project_uid, Locator(found[1]))
        source = f"{found[2]}={found[3]}"
        for is_maker in ("<>", "="):
            sql = _BY_SOURCE.format(is_maker)
            if row := graph.connection.row(sql, (place, until, source)):
                return _target(text, [row])
    for written in dict.fromkeys((text, escape_path(os.fsencode(text)))):
        if row := _find_last(graph, Locator(written), until):
            return _target(text, [row])
    if text.startswith("s3://"):
        raise NotFound(f"no execution read or wrote {text[:200]}", hint=_OBSERVED)
    return None


def _find_last(graph: Graph, locator: Locator, until: int) -> tuple[Any, ...] | None:
    """The last version at a place: that was made, else found; recorded here, else elsewhere."""
    place = location_key(graph.project_uid, locator)
    for origin in ("=", "<>"):
        found = [
            row
            for is_maker in ("<>", "=")
            if (row := graph.connection.row(_LAST.format(is_maker, origin), (place, until)))
        ]
        if found:
            return found[0]
    return None


def _list_versions(graph: Graph, locator: Locator, until: int) -> list[tuple[Any, ...]]:
    place = location_key(graph.project_uid, locator)
    return [
        row
        for origin in ("=", "<>")
        for is_maker in ("<>", "=")
        for row in graph.connection.rows(_ALL.format(is_maker, origin), (place, until))
    ]


def _target(text: str, rows: list[tuple[Any, ...]]) -> Target:
    if not rows:
        raise NotFound(f"nothing that was observed used {text[:200]}", hint=_OBSERVED)
    _, number, ordinal, locator, digest, size, mode, mtime, stored = rows[0]
    alone = len(rows) == 1
    return Target(
        kind="version",
        label=version_id(number, locator, ordinal) if alone else text,
        keys=tuple(int(row[0]) for row in rows),
        locator=locator,
        digest=digest_text(digest) if alone else None,
        size=size if alone else None,
        mode=mode,
        mtime=mtime,
        stored=bool(stored),
        execution=number,
    )


_RESOLVERS: Final[Mapping[str, Callable[[Graph, str, int], Target | None]]] = {
    "pkg:": _resolve_package,
    "ip://": _resolve_address,
    "pvc://": _resolve_on_volume,
}
"""By how the text begins."""
