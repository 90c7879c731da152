"""The audit agent of a test: its log, its state, what it recorded, and load for it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.cluster.kube import Kube, pod
from tests.driver import Project
from tests.kept_bytes import read_kept
from tests.local.server import Server
from tests.wait import wait_until

from clew import db
from clew.agents.audit.audit_log_files import HEAD_BYTES, hash_first_line
from clew.agents.audit.checkpoint import Checkpoint, Position, save_checkpoint
from clew.prov import tables

CANARY = "c4n4ry-9f8e7d6c5b4a"


ROTATED_MB = 10
"""The API server of the tests rotates its log at this size."""


def begin_now(state: Path, log: Path) -> None:
    """Let an agent with this state begin at the end of the log: other tests write to it, too."""
    status = log.stat()
    with log.open("rb") as file:
        first = hash_first_line(file.read(HEAD_BYTES))
        file.seek(0)
        whole = file.read(status.st_size).rfind(b"\n") + 1
    state.mkdir(parents=True)
    position = Position(status.st_dev, status.st_ino, whole, first)
    save_checkpoint(state / "checkpoint.json", Checkpoint(position=position))


def read_log(project: Project, log: Path) -> dict[str, Any]:
    """Run an agent to the end of the log."""
    ran = project(
        "agent", "audit", "--log", str(log), "--once", "--json", "--state", state_of(project)
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    assert (found["gaps"], found["refused"], found["waiting"]) == (0, 0, 0), ran.stderr
    return found


def state_of(project: Project) -> str:
    return str(project.folder.parent / "agent")


class Recorded:
    """What a project has about one namespace."""

    def __init__(self, project: Project, namespace: str) -> None:
        self._database = db.connect(project / ".clew/graph.db")
        self._namespace = namespace

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def begun(self, kind: str) -> list[dict[str, Any]]:
        """The activities of this kind."""
        rows = self._database.rows(
            "SELECT uid, name, node, agent, image, command, facets FROM started WHERE kind = ?"
            " ORDER BY at, uid",
            (kind,),
        )
        names = ("uid", "name", "node", "agent", "image", "command")
        found = [
            dict(zip(names, row, strict=False)) | {"facets": json.loads(row[6])} for row in rows
        ]
        return [one for one in found if self._is_own(one)]

    def _is_own(self, one: dict[str, Any]) -> bool:
        own = one["facets"]["kubernetes"].get("namespace")
        pods = {row["uid"] for row in self.begun("pod")} if own is None else set()
        return own == self._namespace or one["uid"].partition("/")[0] in pods

    def times(self, name: str) -> tuple[int, int | None]:
        """When the Pod of this name was created, and when it ended."""
        rows = self._database.rows(
            "SELECT min(s.at), min(e.at) FROM started s LEFT JOIN ended e ON e.activity = s.id"
            " WHERE s.kind = 'pod' AND s.name = ?",
            (f"{self._namespace}/{name}",),
        )
        return rows[0][0], rows[0][1]

    def places(self, table: str) -> set[str]:
        """The locators of versions that were used or generated here."""
        rows = self._database.rows(
            f"SELECT DISTINCT l.locator FROM {table} f JOIN version v ON v.id = f.version"
            " JOIN location l ON l.id = v.location"
        )
        return {row[0] for row in rows}

    def aliases(self) -> set[tuple[str, str]]:
        rows = self._database.rows(
            "SELECT a.locator, b.locator FROM alias x JOIN location a ON a.id = x.a"
            " JOIN location b ON b.id = x.b"
        )
        return {(row[0], row[1]) for row in rows}

    def rows(self) -> dict[str, list[Any]]:
        """All rows of the executions in this namespace."""
        own = {
            row[0]
            for row in self._database.rows("SELECT execution, facets FROM started")
            if json.loads(row[1]).get("kubernetes", {}).get("namespace") == self._namespace
        }
        owner = {"version": 1, "started": 1, "alias": 0}
        activities = {
            row[0]
            for row in self._database.rows("SELECT id, execution FROM started")
            if row[1] in own
        }
        versions = {
            row[0]
            for row in self._database.rows("SELECT id, execution FROM version")
            if row[1] in own
        }
        found: dict[str, list[Any]] = {}
        for table, columns in tables.COLUMNS.items():
            if table == "location":
                continue
            keys = versions if table == "content" else own if table in owner else activities
            position = owner.get(table, 0)
            rows = self._database.rows(f"SELECT {', '.join(columns)} FROM {table}")
            found[table] = sorted((row for row in rows if row[position] in keys), key=repr)
        return found


def inputs(kube: Kube) -> None:
    """A claim, a ConfigMap and a Secret."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}}
    kube.apply(
        claim, settings | {"data": {"rate": "0.1"}}, secret | {"stringData": {"value": CANARY}}
    )


def trainer(name: str, *command: str) -> dict[str, Any]:
    """A Pod that reads all of them, with a secret in its variables and in an address."""
    presigned = f"https://s3.example.org/b/k?X-Amz-Credential=AKIA&X-Amz-Signature={CANARY}"
    made = pod(
        name,
        *(command or ("sh", "-c", "cat /settings/rate > /data/rate")),
        volume="data",
        env=[
            {"name": "MYSQL_ROOT_PASSWORD", "value": CANARY},
            {"name": "MODEL", "value": presigned},
            {"name": "VALUE", "valueFrom": {"secretKeyRef": {"name": "password", "key": "value"}}},
        ],
    )
    spec = made["spec"]
    spec["containers"][0]["volumeMounts"].append({"name": "settings", "mountPath": "/settings"})
    spec["volumes"].append({"name": "settings", "configMap": {"name": "settings"}})
    return made


def assert_no_canary(folder: Path) -> None:
    """The secret is nowhere; the name of its variable is there, so the search sees the values."""
    kept = list(read_kept(folder))
    assert [what for what, data in kept if CANARY.encode() in data] == []
    named = {what.partition(" ")[0] for what, data in kept if b"MYSQL_ROOT_PASSWORD" in data}
    assert "table" in named


def make_token(server: Server) -> str:
    with server.client() as client:
        made = client.post("/api/v1/tokens", json={"name": "agent", "scope": "observe"})
        return str(made.json()["token"])


def start_agent(
    project: Project, server: Server, log: Path, token: str | None = None
) -> subprocess.Popen[bytes]:
    """`token`: one that was made before, where the server does not answer."""
    command = [sys.executable, "-m", "clew", "agent", "audit", "--log", str(log)]
    environment = project.environment | {
        "CLEW_SERVER": server.address,
        "CLEW_TOKEN": token or make_token(server),
    }
    with (project.folder.parent / "agent.log").open("ab") as output:
        return subprocess.Popen(
            [*command, "--state", state_of(project)],
            env=environment,
            cwd=project.folder.parent,
            stderr=output,
            stdout=output,
        )


def write_load(kube: Kube, log: Path, *, seconds: float) -> None:
    """Write ConfigMaps until the log was rotated, for at least so long."""

    until, inode, number = time.monotonic() + seconds, log.stat().st_ino, 0
    while time.monotonic() < until or log.stat().st_ino == inode:
        data = {"text": f"{number % 10} " * 450_000}  # almost as large as it may be
        named = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"load-{number % 7}"},
        }
        kube("replace", "--force", "--filename", "-", given=json.dumps(named | {"data": data}))
        number += 1
        rotated = log.stat().st_ino != inode
        assert rotated or number < 40 * ROTATED_MB, "the log is not rotated"


def restart_api_server(kube: Kube, *, how: str = "TERM") -> None:
    folder = Path(kube.kubeconfig).parent
    for action in (["stop", "--signal", how], ["start"]):
        words = [sys.executable, "-m", "tools.cluster", "--folder", str(folder), *action]
        subprocess.run([*words, "kube-apiserver"], check=True)
    wait_until("the API server", lambda: "ok" in kube("get", "--raw", "/readyz", ok=False))


def touch(kube: Kube, name: str) -> None:
    """The last request of the test."""
    kube("create", "configmap", name)


def await_request(
    project: Project, namespace: str, name: str, agent: subprocess.Popen[bytes]
) -> None:
    """Wait until the agent, which must not end, has delivered this request."""

    def there() -> bool:
        assert agent.poll() is None, (project.folder.parent / "agent.log").read_text()
        with Recorded(project, namespace) as found:
            return name in {one["facets"]["kubernetes"]["name"] for one in found.begun("request")}

    wait_until("the agent delivered everything", there)
