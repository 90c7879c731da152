"""What a graph says of the containers of a namespace, so that two runs of one workload compare.

Names and digests take the place of uids, times, and the names of the namespace and its volumes.
"""

import json
import re
from dataclasses import dataclass, field

from tests.driver import Project

from clew import db
from clew.prov.cluster.watch_looks import WATCH_LOOKS
from clew.prov.row_keys import digest_text

_ACCESSES = """
SELECT x.activity, l.locator, x.how, c.digest FROM {} x JOIN version v ON v.id = x.version
JOIN location l ON l.id = v.location LEFT JOIN content c ON c.version = v.id
"""
_CONTAINERS = """
SELECT c.id, p.name, c.facets, c.image, c.command,
  (SELECT max(status) FROM ended WHERE activity = c.id)
FROM started c JOIN started p ON p.id = c.execution WHERE c.kind = 'container' AND p.kind = 'pod'
"""


@dataclass
class ContainerRecord:
    image: str
    command: str
    status: int | None
    accesses: set[tuple[str, str, str, str | None]] = field(default_factory=set)
    """Used, generated or invalidated; how; where; and the digest."""
    declared: set[str] = field(default_factory=set)
    """How completely its accesses were seen."""
    gaps: set[str] = field(default_factory=set)


def read_containers(project: Project, namespace: str) -> dict[tuple[str, str], ContainerRecord]:
    """By the names of Pod and container."""
    database = db.connect(project / ".clew/graph.db")
    try:
        found: dict[tuple[str, str], ContainerRecord] = {}
        keys: dict[int, ContainerRecord] = {}
        for key, pod, facets, image, command, status in database.rows(_CONTAINERS):
            if pod.partition("/")[0] == namespace:
                name = json.loads(facets).get("kubernetes", {}).get("name", "")
                keys[key] = ContainerRecord(image, command, status)
                found[pod.partition("/")[2], name] = keys[key]
        for table in ("used", "generated", "invalidated"):
            for key, locator, how, digest in database.rows(_ACCESSES.format(table)):
                if key in keys:
                    place = _normalize(locator, namespace)
                    keys[key].accesses.add((table, how, place, digest_text(digest)))
        for key, kind in database.rows("SELECT activity, kind FROM looked"):
            if key in keys and kind in WATCH_LOOKS:
                keys[key].declared.add(kind)
        for key, what in database.rows("SELECT activity, what FROM gap"):
            if key in keys:
                keys[key].gaps.add(what)
        return found
    finally:
        database.close()


def _normalize(locator: str, namespace: str) -> str:
    """The namespace is also the name of its bucket."""
    return re.sub(r"@pvc-[0-9a-f-]{36}", "@volume", locator.replace(namespace, "namespace"))
