"""Rows of the graph as hits of a search."""

import json
from typing import Any, Literal

from clew.documents.document import from_nanoseconds
from clew.documents.ids import Uid
from clew.documents.lineage.lineage import Hit
from clew.prov.cluster.activity_uids import CLUSTER_KINDS
from clew.prov.queries.formats import (
    execution_id,
    path_fields,
    process_id,
    run_id,
    version_id,
)
from clew.prov.queries.lineage.captions import kind_of_locator
from clew.prov.row_keys import digest_text

By = Literal["id", "name", "command", "image", "note", "tag", "path", "digest"]

_LONGEST_LABEL = 1000


def run_hit(number: int, facets: str, at: int) -> Hit:
    return Hit(
        kind="run",
        id=run_id(number),
        label=json.loads(facets).get("pipeline") or "",
        by="name",
        execution=None,
        at=from_nanoseconds(at),
    )


def execution_hit(
    number: int, kind: str, name: str | None, command: str, image: str | None, at: int, *, by: By
) -> Hit:
    """An execution; those of a cluster are Pods, claims, …"""
    return Hit(
        kind=kind if kind in CLUSTER_KINDS else "execution",
        id=execution_id(number),
        label=_label(name, command, image, by),
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def remark_hit(number: int, by: Literal["note", "tag"], value: str, at: int) -> Hit:
    return Hit(
        kind="execution",
        id=execution_id(number),
        label=value[:_LONGEST_LABEL],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
    )


def activity_hit(
    execution: int,
    number: int | None,
    uid: Uid,
    kind: str,
    name: str | None,
    command: str,
    image: str | None,
    at: int,
    *,
    by: By,
) -> Hit:
    return Hit(
        kind=kind,
        id=process_id(execution, number, uid),
        label=_label(name, command, image, by),
        by=by,
        execution=execution_id(execution),
        at=from_nanoseconds(at),
    )


def _label(name: str | None, command: str, image: str | None, by: By) -> str:
    if by == "image" and image:
        return image[:_LONGEST_LABEL]
    return (name or " ".join(json.loads(command)))[:_LONGEST_LABEL]


def version_hit(row: tuple[Any, ...], by: Literal["path", "digest"]) -> Hit:
    _, number, locator, ordinal, at, digest, size = row
    kind = kind_of_locator(locator)
    return Hit(
        kind="file" if kind == "data" else kind,
        id=version_id(number, locator, ordinal),
        label=path_fields(locator)["path"],
        by=by,
        execution=execution_id(number),
        at=from_nanoseconds(at),
        digest=digest_text(digest),
        size=size,
    )
