"""A version for each topic of the web app, which differs after every change of the topic.

A version is a hash of counts and latest times, so it comes from the database alone: all servers of
a project agree on it, also after a restart. What agents of a cluster observe is a topic of its own,
`lineage`: it changes every second, and no list shows it.
"""

import hashlib
from typing import Final

from clew.prov.graph import Graph

EXECUTIONS = (
    """
    SELECT count(*), count(name), max(number) FROM execution WHERE project = ? AND of_cluster = 0
    """,
    """
    SELECT count(*) FROM execution x JOIN ended e ON e.activity = x.id
    WHERE x.project = ? AND x.of_cluster = 0
    """,
    "SELECT count(*), max(at) FROM note WHERE project = ?",
)
_LINEAGE = ("SELECT coalesce(sum(observations), 0) FROM project WHERE id = ?",)
_RUNS = (
    "SELECT count(*), max(number) FROM run WHERE project = ?",
    "SELECT count(*) FROM ended e JOIN run r ON r.id = e.activity WHERE r.project = ?",
    """
    SELECT state, count(*), max(finished), sum(stop), sum(archived), sum(tries), max(created)
    FROM run_request WHERE project = ? GROUP BY state ORDER BY state
    """,
    "SELECT count(*), max(at) FROM note WHERE project = ?",
)
_PIPELINES = (
    """
    SELECT id, name, display_name, description, archived FROM pipeline WHERE project = ?
    ORDER BY id
    """,
    "SELECT count(*), max(created) FROM pipeline_version WHERE project = ?",
    "SELECT count(*), max(created), sum(archived), max(last_run) FROM experiment WHERE project = ?",
    """
    SELECT count(*), max(created), max(updated), sum(enabled), sum(next) FROM schedule
    WHERE project = ?
    """,
)
_REPEATS = (
    """
    SELECT state, count(*), max(created), max(began), max(finished), sum(stop)
    FROM repeat_request WHERE project = ? GROUP BY state ORDER BY state
    """,
)
_SETTINGS = (
    "SELECT count(*), max(created), max(id), sum(last_used) FROM access_token WHERE project = ?",
)
_TOPICS: Final = {
    "executions": EXECUTIONS,
    "lineage": _LINEAGE,
    "runs": _RUNS,
    "pipelines": _PIPELINES,
    "repeats": _REPEATS,
    "settings": _SETTINGS,
}


def get_versions(graph: Graph) -> dict[str, str]:
    """The version of each topic that the database knows."""
    connection, parameters = graph.connection, (graph.project,)
    return {
        topic: hash_version([connection.rows(query, parameters) for query in queries])
        for topic, queries in _TOPICS.items()
    }


def hash_version(value: object) -> str:
    """A short text that differs where the value differs."""
    return hashlib.blake2b(repr(value).encode(errors="replace"), digest_size=8).hexdigest()
