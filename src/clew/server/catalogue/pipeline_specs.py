"""Compiled pipelines, kept once however many versions and runs are of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from clew.prov.graph import Graph

# A row that is there already is not changed, but held until the transaction ends: whoever sweeps it
# waits, and then sees what has become of it.
_KEEP = """
INSERT INTO spec (project, digest, text) VALUES (?, ?, ?)
ON CONFLICT (project, digest) DO UPDATE SET text = excluded.text WHERE 1 = 0
"""
_HOLD = "UPDATE spec SET digest = digest WHERE project = ? AND digest = ?"
_TEXT = "SELECT text FROM spec WHERE project = ? AND digest = ?"
_TEXTS = "SELECT digest, text FROM spec WHERE project = ? AND digest IN ({})"
_SWEEP = """
DELETE FROM spec WHERE project = ? AND digest = ?
AND NOT EXISTS (SELECT 1 FROM pipeline_version v WHERE v.spec = digest)
AND NOT EXISTS (SELECT 1 FROM run r WHERE r.spec = digest)
AND NOT EXISTS (SELECT 1 FROM schedule s WHERE s.spec = digest)
"""


def store_spec(graph: Graph, text: str) -> str:
    """Within a transaction: keep a pipeline's text, and answer by what it is found again."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    graph.connection.rows(_KEEP, (graph.project, digest, text))
    return digest


def text_of(graph: Graph, digest: str) -> str:
    row = graph.connection.one(_TEXT, (graph.project, digest))
    assert row is not None, "a spec is kept as long as something is of it"
    return str(row[0])


def texts_of(graph: Graph, digests: Iterable[str]) -> dict[str, str]:
    found = graph.connection.among(_TEXTS, digests, before=(graph.project,))
    return {str(digest): str(text) for digest, text in found}


def delete_unused(graph: Graph, digest: str) -> None:
    """Within a transaction: something that was of this pipeline is gone."""
    graph.connection.rows(_HOLD, (graph.project, digest))
    graph.connection.rows(_SWEEP, (graph.project, digest))
