"""Adds the sample pipelines to the catalogue.

Each is added once: a sample that a user deleted does not come back. A sample that differs in a
later release becomes a new version of its pipeline.
"""

import hashlib
from pathlib import Path

from clew.prov.graph import Graph
from clew.server import samples
from clew.server.catalogue.pipelines import pipelines, versions
from clew.server.catalogue.pipelines.versions import Metadata
from clew.server.parsers import compiled_pipelines

DIRECTORY = Path(samples.__file__).parent
TAG = "sample"
"""The tag of sample pipelines. Its value is the directory with the source."""
_KNOWN = "SELECT name, digest FROM sample WHERE project = ?"
_ADD = """
INSERT INTO sample (project, name, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING name
"""
_CHANGE = """
UPDATE sample SET digest = ? WHERE project = ? AND name = ? AND digest = ? RETURNING name
"""
_PIPELINE = "SELECT id FROM pipeline WHERE project = ? AND name = ? AND tags = ?"
_SOURCES = {
    "cifar10": "examples/cifar10",
    "data-passing": "examples/data-passing",
    "mnist": "examples/mnist",
    "taxi-tips": "examples/taxi",
}


def add_samples(graph: Graph, directory: Path = DIRECTORY) -> None:
    """Add the samples that are new, and the samples that changed as new versions."""
    known: dict[str, str] = dict(graph.connection.rows(_KNOWN, (graph.project,)))
    for file in sorted(directory.glob("*.yaml")):
        data = file.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if known.get(file.stem) != digest:
            _add(graph, file.stem, data.decode(), digest, before=known.get(file.stem))


def _add(graph: Graph, name: str, text: str, digest: str, *, before: str | None) -> None:
    spec = compiled_pipelines.normalize_text(text)
    metadata = Metadata(
        name=name if before is None else f"{name}-{digest[:8]}",
        description=compiled_pipelines.description_of(spec),
        tags={TAG: _SOURCES.get(name, "")},
    )

    def insert() -> None:
        """Nothing happens if another server was faster."""
        row, project = graph.connection.row, graph.project
        if before is None:
            if row(_ADD, (project, name, digest)) is not None:
                pipelines.insert(graph, metadata, spec)
        elif row(_CHANGE, (digest, project, name, before)) is not None:
            found = row(_PIPELINE, (project, name, versions.encode_tags(metadata.tags)))
            if found is not None:
                versions.insert(graph, str(found[0]), metadata, spec)

    graph.connection.atomically(insert)
