"""A version for each topic of the web app, which differs after every change of the topic.

A version is a hash of counts and latest times, so it comes from the database alone: all servers of
a project agree on it, also after a restart.
"""

import hashlib
from typing import Final

from clew.prov.graph import Graph

_EXECUTIONS = (
    "SELECT executions FROM project WHERE id = ?",
    "SELECT count(*), count(name) FROM execution WHERE project = ?",
    """
    SELECT count(*) FROM ended e JOIN execution x ON x.id = e.activity WHERE x.project = ?
    """,
    "SELECT count(*), max(at) FROM note WHERE project = ?",
)
_RUNS = (
    "SELECT count(*), max(number) FROM run WHERE project = ?",
    "SELECT count(*) FROM ended e JOIN run r ON r.id = e.activity WHERE r.project = ?",
    """
    SELECT state, count(*), max(finished), sum(stop), sum(archived), sum(tries), max(created)
    FROM run_request WHERE project = ? GROUP BY state ORDER BY state
    """,
)
_PIPELINES = (
    "SELECT id, name, display_name, description FROM pipeline WHERE project = ? ORDER BY id",
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
    "executions": _EXECUTIONS,
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
