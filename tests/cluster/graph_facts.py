"""The facts of a graph about one namespace, so that two runs of one workload compare.

Names take the place of uids; placeholders take that of times, nodes, addresses, volumes and the
name of the namespace.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.driver import Project

from clew import db
from clew.prov.cluster.activity_uids import CONTAINER, POD, REQUEST
from clew.prov.row_keys import digest_text

Fact = tuple[str, ...]
"""What it is (a table of the graph), of which activity, and what it says."""

_ACTIVITIES = """
SELECT s.id, s.execution, s.kind, s.name, s.agent, s.command, s.image, s.environment, s.facets,
  p.name FROM started s LEFT JOIN started p ON p.id = s.execution
"""
_VERSIONS = """
SELECT v.id, l.locator, c.digest, c.size, c.stored FROM version v
JOIN location l ON l.id = v.location LEFT JOIN content c ON c.version = v.id
"""
_FACTS = {
    "ended": "SELECT activity, status, signal FROM ended",
    "used": "SELECT activity, how, version FROM used",
    "generated": "SELECT activity, how, finished, version FROM generated",
    "invalidated": "SELECT activity, how, version FROM invalidated",
    "looked": "SELECT x.activity, x.kind, l.locator, x.answer FROM looked x"
    " JOIN location l ON l.id = x.location",
    "informed": "SELECT activity, via, source FROM informed",
    "alias": "SELECT x.execution, a.locator, b.locator FROM alias x JOIN location a ON a.id = x.a"
    " JOIN location b ON b.id = x.b",
    "gap": "SELECT x.activity, x.what, x.why, l.locator FROM gap x"
    " LEFT JOIN location l ON l.id = x.location",
}
_REFERENCES = ("used", "generated", "invalidated", "informed")
"""Tables whose last column is a version or an activity."""
_COUNTED = ("requests", "failed", "received", "sent")
_PLACEHOLDERS = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "VOLUME"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
        (r"\b[0-9a-f]{32}\b", "UID"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\bkube-api-access-[0-9a-z]{5}\b", "kube-api-access"),
        (r"(?<=ip://)10(\.\d+){3}(?![.\d:])", "ADDRESS"),
        (r"\bnode\d\b", "NODE"),
    )
]


def read_facts(project: Project, namespace: str) -> Counter[Fact]:
    """All facts of what is in a namespace, each with how often the graph has it."""
    database = db.connect(project / ".clew/graph.db")
    try:
        return Counter(_Reader(database, namespace).read())
    finally:
        database.close()


def read_lineage(project: Project, namespace: str, path: str) -> Counter[tuple[str, ...]]:
    """The edges of the lineage of a file on the claim `data`, by the labels of their ends."""
    traced = project.json("trace", f"pvc://{namespace}/data{path}")
    nodes = {
        one["id"]: normalize_text(f"{one['kind']} {one.get('pod') or one['label']}", namespace)
        for one in traced["nodes"]
    }
    return Counter(
        (nodes[one["from"]], one["kind"], nodes[one["to"]], str(one.get("inferred", False)))
        for one in traced["edges"]
    )


def normalize_text(text: str, namespace: str) -> str:
    text = text.replace(namespace, "NAMESPACE")
    for pattern, placeholder in _PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return text


class _Reader:
    def __init__(self, database: db.Connection, namespace: str) -> None:
        self._database = database
        self._namespace = namespace
        self._names: dict[int, str] = {}
        self._versions: dict[int, str] = {}

    def read(self) -> Iterator[Fact]:
        yield from self._read_activities()
        for key, locator, digest, size, stored in self._database.rows(_VERSIONS):
            said = [locator, digest_text(digest), size, stored]
            self._versions[key] = self._plain(" ".join(map(str, said)))
        accessed: dict[Fact, Counter[str]] = {}
        for table, question in _FACTS.items():
            for activity, *said in self._database.rows(question):
                if activity not in self._names:
                    continue
                name = self._names[activity]
                if table in _REFERENCES:
                    said[-1] = self._versions.get(said[-1]) or self._names.get(said[-1])
                if table == "looked" and said[0] == "accessed":
                    self._count(name, said, accessed)
                else:
                    yield (table, name, *map(self._plain, said))
        for fact, counted in accessed.items():
            yield (*fact, *(f"{counted[field]} {field}" for field in _COUNTED))

    def _read_activities(self) -> Iterator[Fact]:
        rows = self._database.rows(_ACTIVITIES)
        for key, _, kind, name, agent, *said, facets, pod in rows:
            own = json.loads(facets).get("kubernetes", {})
            is_inside = kind in (POD, CONTAINER) and (pod or "").startswith(f"{self._namespace}/")
            if not is_inside and own.get("namespace") != self._namespace:
                continue
            if kind == CONTAINER:
                label = f"{pod.partition('/')[2]}/{own.get('name')}:{own.get('restart', 0)}"
            elif kind == REQUEST:
                what = [own[word] for word in ("verb", "resource", "subresource") if word in own]
                label = " ".join([*what, own.get("name", "")])
                own.pop("resource_version", None)
            else:
                label = f"{kind} {own.get('name')}"
            self._names[key] = self._plain(label)
            about = json.dumps(own, sort_keys=True)
            yield ("started", *map(self._plain, (label, kind, name, agent, *said, about)))

    def _count(self, name: str, said: list[Any], accessed: dict[Fact, Counter[str]]) -> None:
        """There is one summary for each minute; together they count the same."""
        kind, locator, answer = said
        summary = json.loads(answer)
        fact = ("looked", name, kind, self._plain(locator), summary["operation"])
        counted = accessed.setdefault((*fact, summary.get("caller", "")), Counter())
        counted.update({field: summary.get(field, 0) for field in _COUNTED})

    def _plain(self, value: object) -> str:
        return normalize_text(str(value), self._namespace)
