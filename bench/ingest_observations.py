"""How fast a server takes what agents of a cluster observe into PostgreSQL, and what is lost.

    python bench/ingest_observations.py [--events N] [--senders N] [--graph ADDRESS] [--json]

The events are those of a node agent: Pods whose containers read and write files of a claim. They
go the whole way: from spools on disk, over HTTP, checked and folded, into PostgreSQL with its
default durability. Beside it, what PostgreSQL takes of the same rows with nothing else to do: COPY
into tables with the same keys, and INSERTs of one row each as a simple collector sends them.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from blake3 import blake3

from clew.agents.destinations import ServerDestination
from clew.agents.sender import Sender
from clew.agents.spool import Spool
from clew.documents.ids import Digest, Uid
from clew.prov import tables
from clew.prov.cluster.facets import ContainerFacet, PodFacet, write_facet
from clew.prov.cluster.locators import volume_locator
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Generated,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.fold import Rows
from clew.settings import load

TARGET = 20_000
READS, WRITES = 60, 20
"""Files that each container reads and writes; each has a content."""
EVENTS = 2 * (READS + WRITES) + 5
"""Of one Pod."""
INSERTED = 5_000
"""Rows of the slow peer: its rate does not depend on how many there are."""
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def observe(pod: int) -> Iterator[AnyEvent]:
    """One Pod, from its start to its end."""
    uid = Uid(f"{pod:032x}")
    container = Uid(f"{uid}/{blake3(uid.encode()).hexdigest()}")
    begun = 1_795_000_000_000_000_000 + pod * 1_000_000
    own = {"execution": uid, "n": 0}
    about = PodFacet(
        namespace="team",
        name=f"step-{pod}",
        labels={"app": "step"},
        spec={"containers": [{"name": "main", "image": "app:1", "args": ["--rate", "0.1"]}]},
    )
    yield Started(
        **own, at=begun, activity=uid, kind="pod", name=f"team/step-{pod}", node="node1",
        facets=write_facet(about),
    )  # fmt: skip
    yield Started(
        **own, at=begun, activity=container, kind="container", parent=uid, image="app:1",
        command=("python", "step.py"), facets=write_facet(ContainerFacet(name="main")),
    )  # fmt: skip
    yield Looked(
        **own, at=begun, activity=container, kind="watched", locator="pvc://team/data",
        answer="fanotify",
    )  # fmt: skip
    for file in range(READS + WRITES):
        reads = file < READS
        path = f"/data/part-{(pod * 7 + file) % 5000}" if reads else f"/data/out-{pod}-{file}"
        locator = volume_locator("team", "data", "pv-1", path.encode())
        version = Version(locator, uid if reads else container, 1)
        at = begun + file * 1000
        digest = Digest(f"blake3:{blake3(path.encode()).hexdigest()}")
        yield (Used if reads else Generated)(**own, at=at, activity=container, version=version)
        yield Content(
            **own, at=at, version=version, digest=digest, size=1000, mode=0o100644, mtime=at,
            stored=False,
        )  # fmt: skip
    yield Looked(
        **own, at=begun + 1_000_000, activity=container, kind="watched_to_end",
        locator="pvc://team/data", answer="fanotify",
    )  # fmt: skip
    for activity in (container, uid):
        yield Ended(**own, at=begun + 1_000_000, activity=activity, status=0)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of its own, as it is configured by default."""
    data, user = folder / "data", ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder.chmod(0o755)
    if user:
        shutil.chown(folder, "postgres")
    run = BINARIES[-1]
    subprocess.run(
        [*user, run / "initdb", "-A", "trust", "-U", "clew", "-D", data],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    options = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
    with open(os.devnull, "wb") as log:
        server = subprocess.Popen(
            [*user, run / "postgres", "-D", data, *options], stdout=log, stderr=log, cwd=folder
        )
    address = f"host={folder} user=clew dbname=postgres"
    while True:
        try:
            psycopg.connect(address).close()
            break
        except psycopg.OperationalError:
            time.sleep(0.1)
    try:
        yield address
    finally:
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        server.wait(timeout=60)


@contextmanager
def clew_server(project: Path, graph: str) -> Iterator[tuple[str, str]]:
    """A server of the project; its address and an agent's token."""
    environment = {**os.environ, "CLEW_GRAPH": graph}
    command = [sys.executable, "-m", "clew"]
    subprocess.run(
        [*command, "init"], check=True, cwd=project, env=environment, capture_output=True
    )
    with subprocess.Popen(
        [*command, "server", "--port", "0", "--json", "--runs", "0", "--no-samples"],
        cwd=project, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        own = (project / ".clew" / "token").read_text().strip()
        request = ["curl", "-sf", "-H", f"Authorization: Bearer {own}", "-H"]
        request += ["Content-Type: application/json", "-d", '{"name":"agent","scope":"observe"}']
        made = subprocess.run(
            [*request, f"{address}/api/v1/tokens"], check=True, capture_output=True
        )
        try:
            yield address, json.loads(made.stdout)["token"]
        finally:
            server.terminate()


def send(folder: Path, pods: range, address: str, token: str, senders: int) -> tuple[float, int]:
    """Deliver the events from spools, one for each sender; the seconds and the events."""
    spools = [Spool(folder / f"spool{n}") for n in range(senders)]
    for number, pod in enumerate(pods):
        if number % 10 == 0:
            batch: list[AnyEvent] = []
        batch += observe(pod)
        if number % 10 == 9 or pod == pods[-1]:
            spools[number // 10 % senders].append(batch)
    settings = load({"CLEW_SERVER": address, "CLEW_TOKEN": token, "HOME": str(folder)})
    threads, found = [], []

    def deliver(spool: Spool) -> None:
        destination = ServerDestination(settings)
        sender = Sender(spool, destination)
        while sender.deliver_some():
            pass
        found.append(sender.delivered)

    begun = time.perf_counter()
    for spool in spools:
        threads.append(threading.Thread(target=deliver, args=(spool,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    for spool in spools:
        spool.close()
    return seconds, sum(found)


def rows_of(pods: range, project: Uid) -> dict[str, list[tuple[object, ...]]]:
    rows = Rows(project)
    for pod in pods:
        rows.add(number_events(observe(pod)))
    return rows.tables()


def count_rows(address: str) -> dict[str, int]:
    with psycopg.connect(address, options="-c search_path=clew") as server:
        return {
            table: server.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in tables.COLUMNS
        }


def copy_rows(address: str, rows: dict[str, list[tuple[object, ...]]]) -> float:
    """COPY the rows into empty tables with the same columns and keys."""
    with psycopg.connect(address, options="-c search_path=clew") as server:
        for table in rows:
            server.execute(f"CREATE TABLE copied_{table} (LIKE {table} INCLUDING ALL)")
        server.commit()
        begun = time.perf_counter()
        for table, found in rows.items():
            columns = ", ".join(tables.COLUMNS[table])
            with server.cursor().copy(f"COPY copied_{table} ({columns}) FROM STDIN") as copy:
                for row in found:
                    copy.write_row(row)
        server.commit()
        return time.perf_counter() - begun


def insert_rows(address: str, rows: list[tuple[object, ...]], table: str) -> float:
    """One INSERT and one commit for each row."""
    columns = tables.COLUMNS[table]
    marks = ", ".join(["%s"] * len(columns))
    sql = f"INSERT INTO one_{table} ({', '.join(columns)}) VALUES ({marks})"
    with psycopg.connect(address, autocommit=True, options="-c search_path=clew") as server:
        server.execute(f"CREATE TABLE one_{table} (LIKE {table} INCLUDING ALL)")
        begun = time.perf_counter()
        for row in rows:
            server.execute(sql, row)
        return time.perf_counter() - begun


def measure(address: str, folder: Path, events: int, senders: int) -> dict[str, float]:
    project = folder / "project"
    project.mkdir()
    pods = range(events // EVENTS)
    with clew_server(project, address) as (server, token):
        send(folder, range(len(pods), len(pods) + 100), server, token, 1)  # warm
        seconds, delivered = send(folder, pods, server, token, senders)
    uid = Uid(
        next(
            line.split('"')[1]
            for line in (project / ".clew" / "config.toml").read_text().splitlines()
            if line.startswith("uid")
        )
    )
    everything = rows_of(range(len(pods) + 100), uid)
    there = count_rows(address)
    lost = sum(len(found) - there[table] for table, found in everything.items())
    rows = rows_of(pods, uid)
    total = sum(map(len, rows.values()))
    copied = copy_rows(address, rows)
    inserted = insert_rows(address, rows["used"][:INSERTED], "used")
    return {
        "events": delivered,
        "rows": total,
        "events_per_second": delivered / seconds,
        "lost_rows": lost,
        "copy_rows_per_second": total / copied,
        "insert_rows_per_second": min(INSERTED, len(rows["used"])) / inserted,
        "rows_per_second": total / seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--graph", help="the address of an empty PostgreSQL database")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="clew-ingest-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if given.graph:
            found = measure(given.graph, folder, given.events, given.senders)
        else:
            (folder / "pg").mkdir()
            with postgres(folder / "pg") as address:
                found = measure(address, folder, given.events, given.senders)
    if given.json:
        print(json.dumps(found))
        return
    rate = found["events_per_second"]
    verdict = "ok" if rate >= TARGET and not found["lost_rows"] else "MISSED"
    print(f"{rate:,.0f} events/s from spools into PostgreSQL (target {TARGET:,}): {verdict}")
    print(f"{found['lost_rows']:.0f} of {found['rows']:,.0f} rows lost")
    print(
        f"{found['rows_per_second']:,.0f} rows/s; COPY {found['copy_rows_per_second']:,.0f} rows/s;"
        f" one INSERT per row {found['insert_rows_per_second']:,.0f} rows/s"
    )


if __name__ == "__main__":
    main()
