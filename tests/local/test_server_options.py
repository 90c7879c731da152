"""How a pipeline is run, said through a server: --jobs, --no-cache, --on-host, --platform."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.server import Server, run_server

PIPELINE = """
from kfp import dsl

@dsl.component(install_kfp_package=False)
def alone(place: str, name: str) -> int:
    import os, time
    mark = os.path.join(place, name)
    open(mark, "w").close()
    seen = len(os.listdir(place))
    time.sleep(0.3)
    seen = max(seen, len(os.listdir(place)))
    os.unlink(mark)
    return seen

@dsl.component(install_kfp_package=False)
def most(a: int, b: int, c: int) -> int:
    return max(a, b, c)

@dsl.pipeline(name="together")
def together(place: str) -> int:
    a, b, c = (alone(place=place, name=n).set_caching_options(False) for n in "abc")
    return most(a=a.output, b=b.output, c=c.output).output
"""
CONTAINER = """
from kfp import dsl

@dsl.container_component
def say():
    return dsl.ContainerSpec(image="nowhere.example/none:1", command=["echo", "said"])

@dsl.pipeline(name="saying")
def saying():
    say()
"""
CORES = len(os.sched_getaffinity(0))


class Asking:
    """Somebody in a folder without a project."""

    def __init__(self, folder: Path, project: Project, server: Server) -> None:
        self.folder = folder
        self.server = server
        self.project = project
        self.through = project.environment | server.variables

    def __call__(self, *words: str) -> Any:
        return self.project.command("pipeline", *words, cwd=self.folder, env=self.through)

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    place = tmp_path_factory.mktemp("options")
    folder = place / "asking"
    folder.mkdir()
    (folder / "together.py").write_text(PIPELINE)
    (folder / "saying.py").write_text(CONTAINER)
    project = Project(place)
    with run_server(project, "--runs", "2") as server:
        yield Asking(folder, project, server)


def together(asking: Asking, *words: str) -> dict[str, Any]:
    """How many were seen at once."""
    place = asking.folder / "place"
    place.mkdir(exist_ok=True)
    found: dict[str, Any] = asking.json("run", "together.py", "-p", f"place={place}", *words)
    assert found["state"] == "succeeded", found
    return found


def state(run: dict[str, Any], name: str) -> str:
    return next(task["state"] for task in run["tasks"] if task["name"] == name)


def test_jobs_and_the_cache(asking: Asking) -> None:
    run = together(asking, "--jobs", "1")
    assert run["outputs"] == {"Output": 1}
    with asking.server.client() as client:  # Kubeflow's client does not see these options
        found = client.get(f"/apis/v2beta1/runs/{run['uid']}").json()
    assert set(found["runtime_config"]) == {"parameters"}
    assert state(together(asking, "--jobs", "1"), "most") == "reused"
    again = together(asking, "--jobs", "1000", "--no-cache")
    assert state(again, "most") == "succeeded"
    assert again["outputs"]["Output"] <= CORES, "no more jobs than the server has cores"


def test_jobs_are_checked(asking: Asking) -> None:
    with asking.server.client() as client:
        for jobs in (0, -1, "many", 10**9):
            answer = client.post("/api/v1/runs", json={"spec": "x", "jobs": jobs})
            assert answer.status_code == 422


def test_a_resumed_run_takes_jobs(asking: Asking) -> None:
    failing = asking.folder / "failing.py"
    failing.write_text(
        "from kfp import dsl\n\n"
        "@dsl.component(install_kfp_package=False)\n"
        "def need(file: str) -> str:\n    return open(file).read()\n\n"
        "@dsl.pipeline(name='failing')\n"
        "def failing(file: str) -> str:\n    return need(file=file).output\n"
    )
    file = asking.folder / "needed.txt"
    run = asking.json("run", "failing.py", "-p", f"file={file}")
    assert run["state"] == "failed"
    file.write_text("there")
    resumed = asking.json("resume", run["id"], "--jobs", "1")
    assert (resumed["state"], resumed["outputs"]) == ("succeeded", {"Output": "there"})


def test_the_server_must_allow_on_host(asking: Asking, tmp_path: Path) -> None:
    refused = asking.json("run", "saying.py", "--on-host")["error"]
    assert refused["code"] == "not-allowed"
    assert "--on-host" in refused["hint"]
    assert asking("run", "saying.py", "--on-host").returncode == 4
    project = Project(tmp_path)
    with run_server(project, "--runs", "2", "--on-host") as server:
        allowed = Asking(asking.folder, project, server)
        ran = allowed("run", "saying.py", "--on-host")
        assert ran.returncode == 0, ran.stderr
        plain = project.command("pipeline", "run", asking.folder / "saying.py", "--on-host")
        assert ran.stderr.splitlines()[0] == plain.stderr.splitlines()[0]  # that no image is used


def test_a_platform_file_is_never_sent(asking: Asking) -> None:
    """It names files and variables of one machine; nothing of it leaves that."""
    secret = asking.folder / "platform.toml"
    secret.write_text('[secrets.key]\nvalue = { file = "/etc/hostname" }\n')
    refused = asking.json("run", "together.py", "-p", "place=x", "--platform", "platform.toml")
    assert refused["error"]["code"] == "usage"
    assert str(asking.project / "pipeline-platform.toml") in refused["error"]["hint"]
    beside = asking.folder / "pipeline-platform.toml"
    beside.write_text("")
    try:
        place = asking.folder / "place"
        said = asking("run", "together.py", "-p", f"place={place}").stderr.decode()
        assert "pipeline-platform.toml applies to this machine only" in said
    finally:
        beside.unlink()
