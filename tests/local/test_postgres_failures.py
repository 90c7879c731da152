"""PostgreSQL as the graph: the same answers as SQLite, shared by projects, and it may fail, too."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.local.processes import TrackedProject
from tests.wait import wait_until

UID = {"uid", "started", "ended", "seconds", "at", "pid", "mtime", "cwd", "new_bytes", "bytes"}


@pytest.fixture
def clew(tmp_path: Path, postgres: str) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path)
    clew.environment["CLEW_GRAPH"] = postgres
    clew.write("data", "b\na\n")
    yield clew
    clew.stop()


def record(clew: TrackedProject) -> None:
    clew("exec", "--name", "first", "--", "sh", "-c", "sort data > mid; echo done")
    clew("exec", "--", "sh", "-c", "cat mid > out; rm mid; exit 3", status=3)
    clew.write("data", "changed\n")
    clew("note", "e1", "who=me")


def answers(clew: TrackedProject) -> dict[str, Any]:
    """What is asked of a project, without what differs from one execution to the next."""
    asked = {
        "list": ["list"],
        "show": ["show", "e2"],
        "detail": ["show", "first", "--detail"],
        "up": ["trace", "e2:out"],
        "down": ["trace", "e1:data", "--down"],
        "versions": ["restore", "--list", "mid"],
        "notes": ["note", "e1"],
    }
    found = {name: clew.json(*words) for name, words in asked.items()}
    found["cat"] = clew("cat", "e1:data").stdout
    clew("restore", "e2:mid@input", "--to", "back")
    found["restored"] = (clew.folder / "back").read_text()
    names = [execution["uid"] for execution in found["list"]]
    plain: dict[str, Any] = _plain(found, str(clew.folder), names)
    for lineage in (plain["up"], plain["down"]):  # a graph has no order
        for part in ("nodes", "edges"):
            lineage[part].sort(key=lambda item: json.dumps(item, sort_keys=True))
    return plain


def _plain(value: Any, folder: str, uids: list[str]) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v, folder, uids) for k, v in value.items() if k not in UID}
    if isinstance(value, list):
        return [_plain(item, folder, uids) for item in value]
    if isinstance(value, str):
        for number, uid in enumerate(uids):
            value = value.replace(uid, f"uid{number}")
        return value.replace(folder, "HERE")
    return value


def test_the_answers_are_those_of_sqlite(clew: TrackedProject, tmp_path: Path) -> None:
    other = TrackedProject(tmp_path / "sqlite")
    other.write("data", "b\na\n")
    record(clew)
    record(other)
    ours, theirs = answers(clew), answers(other)
    for facet in (ours, theirs):  # what only their environments differ in
        for document in (facet["show"], facet["detail"]):
            document["environment"]["variables"] = None
    assert ours == theirs
    assert not (clew.folder / ".clew" / "graph.db").exists()
    clew("rm", "e1", "--yes")
    assert clew.error("show", "first", status=5)[0] == "not-found"
    assert [found["id"] for found in clew.json("list")] == ["e2"]
    assert clew.json("gc", "--yes")["files"] >= 1
    assert clew.json("fsck")["ok"]
    assert clew("cat", "e2:out").stdout == "a\nb\n"


def test_projects_in_one_database_do_not_see_each_other(
    clew: TrackedProject, tmp_path: Path
) -> None:
    other = TrackedProject(tmp_path / "other")
    other.environment["CLEW_GRAPH"] = clew.environment["CLEW_GRAPH"]
    other.write("data", "of the other\n")
    clew("exec", "--name", "same", "--", "sh", "-c", "cat data > out")
    other("exec", "--name", "same", "--", "sh", "-c", "cat data > out")
    other("exec", "--", "true")
    assert [found["id"] for found in clew.json("list")] == ["e1"]
    assert [found["id"] for found in other.json("list")[::-1]] == ["e1", "e2"]
    assert clew("cat", "same:out").stdout == "b\na\n"
    assert other("cat", "same:out").stdout == "of the other\n"
    labels = [node["label"] for node in clew.json("trace", "out")["nodes"]]
    assert not any(str(other.folder) in label for label in labels)
    clew("rm", "same", "--yes")
    clew("gc", "--yes")
    assert other("cat", "same:out").stdout == "of the other\n"
    assert other.json("fsck")["ok"]
    assert clew.json("fsck")["ok"]


def test_many_executions_at_the_same_time(clew: TrackedProject) -> None:
    running = [
        clew.start("exec", "--json", "--", "sh", "-c", f"sort data > o{n}") for n in range(6)
    ]
    found = set()
    for process in running:
        _, said = process.communicate()
        assert process.returncode == 0, said
        found.add(json.loads(said.splitlines()[-1])["id"])
    assert found == {f"e{n + 1}" for n in range(6)}
    assert {execution["state"] for execution in clew.json("list")} == {"done"}


def test_a_command_runs_though_the_database_is_away(clew: TrackedProject, mortal: Server) -> None:
    clew.environment["CLEW_GRAPH"] = mortal.address
    mortal.die()
    ran = clew("exec", "--name", "first", "--", "sh", "-c", "cat data > out; exit 3", status=3)
    assert "cannot be reached" in ran.stderr
    assert "its record is stored" in ran.stderr
    told = clew("exec", "--json", "--", "sh", "-c", "kill -9 $$", status=137).stderr
    document = json.loads(told.splitlines()[-1])
    assert (document["id"], document["state"]) == (None, "failed")
    assert (document["status"], document["signal"]) == (None, 9)
    assert document["warning"]["code"] == "no-database"
    clew("exec", "--", "no-such-command", status=127)
    bad = clew("exec", "--name", "e7", "--", "touch", "it-ran", status=2)
    assert "cannot be a name" in bad.stderr
    assert not (clew.folder / "it-ran").exists()
    assert clew.error("list", status=1)[0] == "no-database"
    mortal.start()
    first, second = clew.json("list")[::-1]
    assert (first["name"], first["state"], first["status"]) == ("first", "failed", 3)
    assert (second["state"], second["signal"]) == ("failed", 9)
    assert clew("cat", "first:out").stdout == "b\na\n"
    assert clew.leftovers() == []
    assert clew.json("fsck")["ok"]


def test_a_command_runs_though_the_database_hangs(clew: TrackedProject, mortal: Server) -> None:
    clew.environment["CLEW_GRAPH"] = f"{mortal.address} connect_timeout=2"
    clew("exec", "--", "true")
    with mortal.stopped():
        for name in ("second", "third"):  # the third finds the record of the second in its way
            ran = clew("exec", "--name", name, "--", "sh", "-c", "exit 3", status=3)
            assert "its record is stored" in ran.stderr
    assert [found["name"] for found in clew.json("list")[::-1]] == [None, "second", "third"]
    assert clew.leftovers() == []


def test_a_command_runs_though_a_session_hangs(clew: TrackedProject, mortal: Server) -> None:
    """Its backend is stopped and holds the locks of a transaction, for which all others wait."""
    import psycopg

    clew.environment["CLEW_GRAPH"] = mortal.address
    clew("exec", "--", "true")
    with psycopg.connect(mortal.address) as session:
        session.execute("LOCK TABLE clew.execution IN ACCESS EXCLUSIVE MODE")
        backend = session.info.backend_pid
        os.kill(backend, signal.SIGSTOP)
        try:
            ran = clew("exec", "--", "sh", "-c", "exit 3", status=3)
        finally:
            os.kill(backend, signal.SIGCONT)
        assert "its record is stored" in ran.stderr
        session.rollback()
    assert [found["status"] for found in clew.json("list")[::-1]] == [0, 3]
    assert clew.leftovers() == []


def test_a_recorder_is_killed_while_the_database_is_away(
    clew: TrackedProject, mortal: Server
) -> None:
    clew.environment["CLEW_GRAPH"] = mortal.address
    mortal.die()
    process = clew.start("exec", "--", "sh", "-c", "cat data; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "b\n"
    process.kill()
    process.communicate()
    clew.wait_until_ended()
    mortal.start()
    clew("exec", "--", "true")
    assert [found["state"] for found in clew.json("list")[::-1]] == ["broken", "done"]
    assert clew("cat", "e1:data").stdout == "b\na\n"
    assert clew.leftovers() == []


def test_a_malformed_address_is_refused(clew: TrackedProject) -> None:
    clew.environment["CLEW_GRAPH"] = "postgresql://host:port/x y"
    ran = clew("exec", "--", "touch", "it-ran", status=2)
    assert "CLEW_GRAPH is not the address" in ran.stderr
    assert not (clew.folder / "it-ran").exists()


class Server:
    """A PostgreSQL that may be stopped and started again."""

    def __init__(self, home: Path) -> None:
        from tests.conftest import _as_postgres, _binaries

        binaries = _binaries()
        assert binaries is not None
        self.home = home
        self._as = _as_postgres
        self._binaries = binaries
        home.mkdir(mode=0o755)
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        words = ["--no-sync", "-A", "trust", "-U", "clew", "-D", str(home / "data")]
        self._run(str(binaries / "initdb"), *words)
        self.address = f"host={home} user=clew dbname=postgres"

    def _run(self, *words: str) -> None:
        subprocess.run(self._as(list(words)), check=True, capture_output=True, cwd=self.home)

    def start(self) -> None:
        import psycopg

        settings = f"-c listen_addresses= -c unix_socket_directories={self.home} -c fsync=off"
        words = ["-D", str(self.home / "data"), "-l", str(self.home / "log"), "-o", settings]
        self._run(str(self._binaries / "pg_ctl"), "start", "-w", *words)
        psycopg.connect(self.address).close()

    def restart(self) -> None:
        """As an administrator does: every connection is ended at once."""
        words = ["-D", str(self.home / "data"), "-l", str(self.home / "log"), "-m", "fast"]
        self._run(str(self._binaries / "pg_ctl"), "restart", "-w", *words)

    def cut(self, which: str = "true") -> None:
        """End every connection but the one that asks for it."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                f" pid <> pg_backend_pid() AND backend_type = 'client backend' AND {which}"
            )

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """The postmaster accepts connections, since the kernel does, and never answers."""
        postmaster = int((self.home / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(postmaster, signal.SIGCONT)

    def die(self) -> None:
        """At once, as in a power cut: every connection is gone."""
        pidfile = self.home / "data" / "postmaster.pid"
        if pidfile.exists():
            os.kill(int(pidfile.read_text().split()[0]), signal.SIGQUIT)
            wait_until("the server's end", lambda: not pidfile.exists())


@pytest.fixture
def mortal() -> Iterator[Server]:
    home = Path(f"/tmp/clew-dying-postgres-{os.getpid()}")  # a socket's path must be short
    try:
        server = Server(home)
        server.start()
        yield server
        server.die()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_the_server_dies_meanwhile(clew: TrackedProject, mortal: Server) -> None:
    clew.environment["CLEW_GRAPH"] = mortal.address
    line = "cat data > out; echo ready; read word; cat data > late; exit 4"
    process = clew.start("exec", "--", "sh", "-c", line)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    mortal.die()
    _, said = process.communicate("go\n")
    assert process.returncode == 4
    assert "clew: warning: " in said
    assert "e1 ended with status 4" in said
    assert "Traceback" not in said
    mortal.start()
    clew("exec", "--", "true")
    first, second = clew.json("list")[::-1]
    assert (first["state"], first["status"]) == ("failed", 4)
    assert second["state"] == "done"
    assert clew("cat", "e1:late").stdout == "b\na\n"
    assert clew.leftovers() == []
    assert clew.json("fsck")["ok"]


def test_the_server_is_restarted_meanwhile(clew: TrackedProject, mortal: Server) -> None:
    clew.environment["CLEW_GRAPH"] = mortal.address
    process = clew.start("exec", "--", "sh", "-c", "echo ready; read word; cat data > late")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    mortal.die()
    mortal.start()
    _, said = process.communicate("go\n")
    assert process.returncode == 0
    assert "warning" not in said
    assert [found["state"] for found in clew.json("list")] == ["done"]


def test_a_killed_execution_is_recovered_into_postgres(clew: TrackedProject) -> None:
    process = clew.start("exec", "--", "sh", "-c", "cat data; sleep 1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "b\n"
    process.kill()
    process.communicate()
    clew.wait_until_ended()
    clew("exec", "--", "true")
    assert [found["state"] for found in clew.json("list")[::-1]] == ["broken", "done"]
    assert clew("cat", "e1:data").stdout == "b\na\n"
    assert clew.leftovers() == []
