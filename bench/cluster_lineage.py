"""How fast the lineage of a cluster is answered by PostgreSQL, beside a recursive query by hand.

    python bench/cluster_lineage.py [--edges N] [--json]

Pipelines of 100 Pods share a claim each. Every Pod reads six files of the Pod before it, three of
the one before that, and a dataset of its claim; it writes eight files. A node agent watched the
claims of half of the pipelines; of the others, only the audit witness knows which Pods had them
mounted. The rows are those that the agents' events give. They are made inside a PostgreSQL server
of their own, without its indexes, which are built at the end.

The peer follows the same files by one recursive query, written by hand: it knows neither volumes
nor times, and answers with ids only.
"""

# ruff: noqa: E501  (the SQL is easier to read in long lines)

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg

from clew.db import connect
from clew.prov.graph import Graph
from clew.prov.queries.lineage.lineage import trace_lineage
from clew.prov.queries.targets import resolve_target
from clew.prov.row_keys import location_key

PODS, WRITES = 100, 8
EDGES_OF_POD = 15.9
"""On average: a watched Pod reads ten files and writes eight, another one only writes; both use an
image, and use and make the claim as a whole."""
DEPTH, ROUNDS = 10, 9
TABLES = (
    "location",
    "execution",
    "started",
    "ended",
    "version",
    "content",
    "used",
    "generated",
    "looked",
    "alias",
)
START = 1_700_000_000

# pod p of pipeline g starts p minutes after the first; a key is a hash, as everywhere
SETUP = """
CREATE FUNCTION key(kind text, number bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT hashtextextended(kind || number, 0) $$;
CREATE FUNCTION version_key(maker bigint, number bigint) RETURNS bigint IMMUTABLE PARALLEL SAFE
  LANGUAGE sql AS $$ SELECT (maker & ~4503599627370495) | (key('v', number) & 4503599627370495) $$;
CREATE UNLOGGED TABLE pod AS SELECT i, i / {PODS} AS g, i % {PODS} AS p, key('x', i) AS x, key('c', i) AS c,
  ({START} + (i % {PODS}) * 60) * 1000000000::bigint AS at FROM generate_series(0, {count} - 1) AS i;
ANALYZE pod;
"""
FILL = """
INSERT INTO execution SELECT x, {project}, md5('x' || i), i + 1, NULL, at, 0, 1 FROM pod;
INSERT INTO started (id, execution, n, at, uid, kind, parent, command, name, image, node, environment, facets)
  SELECT x, x, 1, at, md5('x' || i), 'pod', NULL, '[]', 'team/p' || i, NULL, 'node-1', '{{}}',
  '{{"kubernetes": {{"namespace": "team"}}}}' FROM pod;
INSERT INTO started (id, execution, n, at, uid, kind, parent, command, name, image, node, environment, facets)
  SELECT c, x, 1, at, md5('x' || i) || '/' || md5('c' || i), 'container', x, '["python","step.py"]', 'main', 'app:1',
  'node-1', '{{}}', '{{"kubernetes": {{"name": "main"}}}}' FROM pod;
INSERT INTO ended SELECT a, 2, at + 50000000000, 0, NULL, NULL, NULL, NULL, NULL, NULL, '{{}}', '{{}}'
  FROM pod, LATERAL (VALUES (x), (c)) AS one (a);
INSERT INTO location SELECT key('l', i * 8 + f), {project}, 'pvc://team/g' || g || '@pv-' || g || '/p' || p || '/f' || f
  FROM pod, generate_series(0, {WRITES} - 1) AS f;
INSERT INTO location SELECT key('d', g), {project}, 'pvc://team/g' || g || '@pv-' || g || '/data' FROM pod WHERE p = 0;
INSERT INTO location SELECT key('i', n), {project}, 'image://sha256:' || repeat(md5('i' || n), 2) FROM generate_series(0, 99) n;
-- what they write
INSERT INTO version SELECT version_key(c, i * 8 + f), x, key('l', i * 8 + f), c, 1, at + 40000000000 + f
  FROM pod, generate_series(0, {WRITES} - 1) AS f;
INSERT INTO generated SELECT c, 100 + f, version_key(c, i * 8 + f), at + 40000000000 + f, 'write', 1
  FROM pod, generate_series(0, {WRITES} - 1) AS f;
INSERT INTO content SELECT version_key(c, i * 8 + f), 1, sha256(int8send(i * 8 + f)), 1000, 33188, at, 1, NULL, NULL
  FROM pod, generate_series(0, {WRITES} - 1) AS f;
-- what they find: six files of the Pod before, three of the one before that, and the dataset
CREATE UNLOGGED TABLE reads AS SELECT i, g, p, x, c, at, r, (i - 1 - r / 6) * 8 + r % 6 AS file
  FROM pod, generate_series(0, 8) AS r WHERE p > r / 6 AND g % 2 = 0;
INSERT INTO version SELECT version_key(x, -100 * i - r - 1), x, key('l', file), x, 1, at + 1000000000 + r FROM reads;
INSERT INTO used SELECT c, 200 + r, version_key(x, -100 * i - r - 1), at + 1000000000 + r, 'open' FROM reads;
INSERT INTO content SELECT version_key(x, -100 * i - r - 1), 1, sha256(int8send(file)), 1000, 33188, at, 1, NULL, NULL FROM reads;
INSERT INTO version SELECT version_key(x, -100 * i - 50), x, key('d', g), x, 1, at + 1000000000 FROM pod WHERE g % 2 = 0;
INSERT INTO used SELECT c, 250, version_key(x, -100 * i - 50), at + 1000000000, 'open' FROM pod WHERE g % 2 = 0;
INSERT INTO content SELECT version_key(x, -100 * i - 50), 1, sha256(int8send(-g)), 10000, 33188, at, 1, NULL, NULL FROM pod WHERE g % 2 = 0;
INSERT INTO version SELECT version_key(x, -100 * i - 51), x, key('i', i % 100), x, 1, at FROM pod;
INSERT INTO used SELECT c, 251, version_key(x, -100 * i - 51), at, 'exec' FROM pod;
INSERT INTO content SELECT version_key(x, -100 * i - 51), 1, ('sha256:' || repeat(md5('i' || i % 100), 2))::bytea, 0, 0, 0, 0, NULL, NULL FROM pod;
-- the claim as a whole
INSERT INTO version SELECT version_key(x, -100 * i - 60), x, claim.key, x, 1, at FROM pod JOIN claim USING (g);
INSERT INTO used SELECT c, 260, version_key(x, -100 * i - 60), at, 'open' FROM pod;
INSERT INTO version SELECT version_key(c, -100 * i - 61), x, claim.key, c, 1, at FROM pod JOIN claim USING (g);
INSERT INTO generated SELECT c, 261, version_key(c, -100 * i - 61), at, 'write', 0 FROM pod;
INSERT INTO looked (activity, n, location, kind, at, answer)
  SELECT c, 300, claim.key, 'watched', at, 'fanotify' FROM pod JOIN claim USING (g) WHERE g % 2 = 0;
INSERT INTO looked (activity, n, location, kind, at, answer)
  SELECT c, 301, claim.key, 'watched_to_end', at, 'fanotify' FROM pod JOIN claim USING (g) WHERE g % 2 = 0;
"""
PEER = """
WITH RECURSIVE walk (container, depth) AS (
  SELECT activity, 1 FROM generated WHERE version = %s
  UNION
  SELECT g.activity, w.depth + 1
  FROM walk w JOIN used u ON u.activity = w.container JOIN version v ON v.id = u.version
  JOIN content c ON c.version = v.id
  JOIN version o ON o.location = v.location AND o.maker <> o.execution AND o.at < v.at
  JOIN content d ON d.version = o.id AND d.digest = c.digest
  JOIN generated g ON g.version = o.id
  WHERE w.depth < %s
)
SELECT count(DISTINCT container) FROM walk
"""


@contextmanager
def start_server() -> Iterator[str]:
    """The address of a PostgreSQL server that ends with the measurement."""
    found = shutil.which("initdb") or next(
        map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True))
    )
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    home = Path(tempfile.mkdtemp(prefix="clew-bench-"))
    try:
        home.chmod(0o755)
        if as_user:
            shutil.chown(home, "postgres")
        data = str(home / "data")
        init = [found, "--no-sync", "-A", "trust", "-U", "clew", "-D", data]
        subprocess.run([*as_user, *init], check=True, capture_output=True, cwd=home)
        options = {
            "listen_addresses": "", "unix_socket_directories": str(home), "fsync": "off",
            "shared_buffers": "1GB", "maintenance_work_mem": "512MB", "max_wal_size": "4GB",
            "wal_level": "minimal", "max_wal_senders": "0",
        }  # fmt: skip
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        binary = str(Path(found).with_name("postgres"))
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(
                [*as_user, binary, "-D", data, *words], stdout=log, stderr=log, cwd=home
            )
        try:
            address = f"host={home} user=clew dbname=postgres"
            for _ in range(300):
                try:
                    psycopg.connect(address).close()
                    break
                except psycopg.OperationalError:
                    time.sleep(0.1)
            yield address
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def fill(address: str, graph: Graph, count: int, *, pods: int = PODS) -> None:
    """`pods`: how many Pods each pipeline has."""
    values = {
        "PODS": pods,
        "START": START,
        "WRITES": WRITES,
        "count": count,
        "project": graph.project,
    }
    with psycopg.connect(address, autocommit=True) as server:
        server.execute("SET search_path TO clew; SET work_mem = '256MB'")
        server.execute(SETUP.format(**values))
        server.execute("CREATE UNLOGGED TABLE claim (g bigint, key bigint)")
        claims = [
            (g, location_key(graph.project_uid, f"pvc://team/g{g}")) for g in range(count // pods)
        ]
        with server.cursor().copy("COPY claim FROM STDIN") as copy:
            for row in claims:
                copy.write_row(row)
        server.execute(
            "INSERT INTO location SELECT key, %s, 'pvc://team/g' || g FROM claim", (graph.project,)
        )
        indexes = server.execute(
            "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid), c.conname, t.relname,"
            " pg_get_constraintdef(c.oid) FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid"
            " LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid WHERE t.relname = ANY(%s)",
            ([*TABLES],),
        ).fetchall()
        for name, _, constraint, table, _ in indexes:
            drop = (
                f"ALTER TABLE {table} DROP CONSTRAINT {constraint}"
                if constraint
                else f"DROP INDEX {name}"
            )
            server.execute(drop)
        for statement in FILL.format(**values).split(";\n"):
            if statement.strip():
                server.execute(statement)
        for _, index, constraint, table, definition in indexes:
            server.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT {constraint} {definition}"
                if constraint
                else index
            )
        server.execute("DROP TABLE pod, reads, claim")
        server.execute("VACUUM ANALYZE")


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds: the first time, and the median of the next."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return round(times[0], 1), round(statistics.median(times[1:]), 1)


def run(address: str, edges: int) -> dict[str, float]:
    graph = Graph(connect(Path(), address=address), f"{time.time_ns():032x}")
    count = math.ceil(edges / EDGES_OF_POD / (2 * PODS)) * 2 * PODS
    begin = time.perf_counter()
    fill(address, graph, count)
    rows = graph.connection.rows
    figures: dict[str, float] = {
        "pods": count,
        "edges": rows("SELECT (SELECT count(*) FROM used) + (SELECT count(*) FROM generated)")[0][
            0
        ],
        "fill_s": round(time.perf_counter() - begin),
    }
    find = "SELECT version_key(key('c', ?), ? * 8 + ?)"
    for name, pipeline in (
        ("watched", 2 * (count // PODS // 4)),
        ("by_volume", 2 * (count // PODS // 4) + 1),
    ):
        pod = pipeline * PODS + PODS - 1
        text = f"e{pod + 1}"
        (version,) = rows(find, (pod, pod, 3))[0]

        def trace(depth: int = DEPTH, text: str = text) -> object:
            target = resolve_target(
                graph, text, machine="m", locate=lambda path: path, digest_of=lambda _: None
            )
            return trace_lineage(graph, target, depth=depth)

        found = trace()
        figures[f"{name}_nodes"] = len(found.nodes)  # type: ignore[attr-defined]
        figures[f"{name}_edges"] = len(found.edges)  # type: ignore[attr-defined]
        figures[f"{name}_first_ms"], figures[f"{name}_ms"] = measure(trace)
        if name == "watched":
            pods = {node.pod for node in found.nodes if node.pod}  # type: ignore[attr-defined]
            figures["watched_pods"] = len(pods)
            with psycopg.connect(address, autocommit=True) as server:
                server.execute("SET search_path TO clew")
                peer = partial(server.execute, PEER, (version, DEPTH))
                figures["peer_pods"] = peer().fetchall()[0][0]
                figures["peer_first_ms"], figures["peer_ms"] = measure(peer)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with start_server() as address:
        figures = run(address, options.edges)
    if options.json:
        print(json.dumps(figures))
        return
    for name, figure in figures.items():
        print(f"{name:24} {figure:,}")


if __name__ == "__main__":
    main()
