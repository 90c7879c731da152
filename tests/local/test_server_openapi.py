"""Everything that the OpenAPI document allows, and much that it does not, asked of a real server.

Whatever is asked: it is answered with a status, a type and a shape that are written down, and never
fails.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.programs.compiling import HERE, run_script
from tests.local.server import Server, run_up
from tests.wait import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One of a project that has e1, e2, and the run r1; it runs notebooks, too."""
    project = Project(tmp_path_factory.mktemp("openapi"))
    (project / "raw.csv").write_text("b\na\n")
    project.sh("sort raw.csv | tee sorted.csv")
    project.sh("wc -l sorted.csv > lines.txt")
    spec = project / "measuring.yaml"
    run_script(HERE / "measuring.py", spec)
    with run_up(project) as found, found.client() as client:
        _run(client, spec)
        yield found


def _run(client: httpx2.Client, spec: Path) -> None:
    uid = client.post("/api/v1/runs", json={"spec": spec.read_text()}).json()["uid"]
    wait_until("the end of the run", lambda: _state(client, uid) not in ("pending", "running"))


def _state(client: httpx2.Client, uid: str) -> str:
    return str(client.get(f"/api/v1/runs/{uid}").json()["state"])


@pytest.mark.parametrize(
    "phases",
    ["examples,coverage", pytest.param("examples,coverage,fuzzing", marks=pytest.mark.heavy)],
)
def test_every_response_is_documented(server: Server, phases: str) -> None:
    """As schemathesis asks: by the examples, at the edges of every type, and at random (heavy: two
    random requests of a route found nothing beyond the edges, and took a third of the time)."""
    command = [
        Path(sys.executable).with_name("schemathesis"),
        "run",
        f"{server.address}/api/v1/openapi.json",
        *("--header", f"Authorization: Bearer {server.token}"),
        *("--phases", phases, "--max-examples", "20"),
        *("--seed", "1", "--generation-database", "none"),
        # A request of the right shape may still ask for what cannot be: that is a documented 400.
        *("--exclude-checks", "positive_data_acceptance"),
        *("--exclude-path", "/api/v1/events"),  # MessagePack, which it cannot write
        *("--exclude-path", "/api/v1/observations"),  # the same
        *("--exclude-path", "/api/v1/changes"),  # a stream without end
        # It would install JupyterLab into the environment of the tests.
        *("--exclude-path", "/api/v1/programs/{name}/install"),
        *("--request-timeout", "60", "--no-color"),
    ]
    home = server.log.parent  # it keeps things
    ran = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_route_documents_its_errors(server: Server) -> None:
    """Every route says how it may fail, and in which words."""
    with server.client() as client:
        document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            answers = operation["responses"]
            kind = "application/problem+json" if path.startswith("/api/v1/") else "application/json"
            for status in ("401", "413", "422", "503"):
                assert kind in answers[status]["content"], (path, method)
            assert set(answers) - {"401", "413", "422", "503"}, (path, method)
