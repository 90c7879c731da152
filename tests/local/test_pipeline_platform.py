"""Resources and Kubernetes settings of pipelines that run on this machine."""

import fcntl
import hashlib
import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE, run_script

from clew.store import Store


@pytest.fixture(autouse=True)
def _turn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One test at a time over all workers: some look for secrets in the machine's memory."""
    with (tmp_path_factory.getbasetemp().parent / "secrets.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


PASSWORD, TOKEN, KEY = "correct-horse-battery", "tok-abcdef-123456", "the-very-private-key"
MAPPING = """
[secrets.database]
password = { env = "WHERE_IT_IS" }
token = { file = "token.txt" }

[secrets.certificate]
"tls.key" = { file = "key.pem" }

[configmaps.settings]
mode = "fast"

[pvcs]
data = "data"
"""


@pytest.fixture(scope="session")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every pipeline of `programs/platforms.py` is, compiled."""
    folder = tmp_path_factory.mktemp("platforms")
    run_script(HERE / "platforms.py", folder)
    return folder


@pytest.fixture(autouse=True)
def _without_mapping(platforms: Path) -> Iterator[None]:
    yield
    (platforms / "pipeline-platform.toml").unlink(missing_ok=True)


def run(project: Project, *words: str | Path, status: int = 0) -> tuple[dict[str, Any], str]:
    """The run's document, and what was said beside it."""
    ran = project.command("pipeline", "run", *words, "--json")
    assert ran.returncode == status, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    return document, ran.stderr.decode()


def test_tasks_wait_until_they_fit(project: Project, platforms: Path, tmp_path: Path) -> None:
    total = next(
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemTotal:")
    )
    folder = tmp_path / "spans"
    folder.mkdir()
    given = ("-p", f"folder={folder}", "-p", f"memory={total * 6 // 10}Ki")
    _, said = run(project, platforms / "crowding.yaml", *given)
    spans = {
        file.name: tuple(map(float, file.read_text().split()))
        for file in folder.iterdir()
        if file.suffix != ".there"
    }
    # two tenths of a core: c and d waited for each other
    assert sorted(spans) == ["a", "b", "c", "chips", "cores", "d"]

    def together(one: str, other: str) -> bool:
        return spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]

    assert not together("a", "b")  # there is memory for one of them
    for alone in ("cores", "chips"):
        assert not any(together(alone, other) for other in spans if other != alone)
    assert "runs alone: it requests more than this machine has: 5000 cores of" in said
    assert "64 accelerators of" in said


def test_an_invalid_request_from_an_input_fails_the_task(
    project: Project, platforms: Path, tmp_path: Path
) -> None:
    given = ("-p", f"folder={tmp_path}", "-p", "cpu=many")
    document, _ = run(project, platforms / "asking.yaml", *given, status=1)
    assert "'many' is not a quantity" in document["tasks"][0]["error"]
    given = ("-p", f"folder={tmp_path}", "-p", "cpu=100m")
    document, _ = run(project, platforms / "asking.yaml", *given)
    assert document["state"] == "succeeded"


def mapped(project: Project, platforms: Path, *, beside: bool = True) -> Path:
    """The folder of the mapping; it stands beside the pipelines, or in the project."""
    folder = platforms if beside else project.folder
    (folder / "pipeline-platform.toml").write_text(MAPPING)
    (folder / "token.txt").write_text(f"{TOKEN}\n")
    (folder / "key.pem").write_text(KEY)
    (folder / "data").mkdir(exist_ok=True)
    project.environment["WHERE_IT_IS"] = PASSWORD
    return folder


@pytest.fixture
def placed(platforms: Path, tmp_path: Path) -> Iterator[Path]:
    """The compiled pipelines, with a folder to mount in."""
    (platforms / "mounts").mkdir(exist_ok=True)
    yield platforms
    assert list((platforms / "mounts").rglob("*")) == []  # each volume has gone with its task
    assert not list(Path("/dev/shm").glob("clew-secrets-*"))


def outputs(document: dict[str, Any]) -> dict[str, Any]:
    return {task["name"]: task["outputs"].get("Output") for task in document["tasks"]}


def everything(project: Project) -> Iterator[tuple[str, bytes]]:
    """Every byte that a run left: files, what is stored in packs, what the graph holds."""
    for path in project.folder.rglob("*"):
        if path.is_file() and path.name not in ("token.txt", "key.pem"):
            yield str(path), path.read_bytes()
    with Store(project / ".clew" / "store") as store:
        for digest in store._index.contents():
            name = f"blake3:{digest.hex()}"
            yield name, b"".join(store.read(name))
    if (project / ".clew" / "graph.db").exists():
        with closing(sqlite3.connect(project / ".clew" / "graph.db")) as graph:
            for line in graph.iterdump():
                yield "graph", line.encode()


@pytest.mark.parametrize(
    ("name", "secrets"),
    [("keeping-secrets", (PASSWORD, TOKEN)), ("mounting-secrets", (PASSWORD, TOKEN, KEY))],
)
def test_secrets_are_available_and_never_recorded(
    project: Project, placed: Path, name: str, secrets: tuple[str, ...]
) -> None:
    mapped(project, placed)
    document, said = run(project, placed / f"{name}.yaml")
    task = document["tasks"][0]
    expected = hashlib.sha256("".join(secrets).encode()).hexdigest()
    assert document["outputs"] == {"Output": expected}  # so it had them
    log = project.command("pipeline", "logs", task["id"]).stdout
    assert log.count(b"the secret is ***") == len(secrets)
    details = project.command("show", task["execution"], "--detail", "--json").stdout
    told = [("document", json.dumps(document).encode()), ("said", said.encode()), ("log", log)]
    for where, data in (*told, ("details", details), *everything(project)):
        for secret in secrets:
            assert secret.encode() not in data, where


def test_a_changed_secret_or_setting_makes_a_task_run_again(
    project: Project, platforms: Path
) -> None:
    folder = mapped(project, platforms)

    def again() -> tuple[str, str]:
        document, _ = run(project, platforms / "measuring-secrets.yaml")
        return document["tasks"][0]["state"], document["outputs"]["Output"]

    assert again() == ("succeeded", f"{len(PASSWORD)} fast")
    assert again() == ("reused", f"{len(PASSWORD)} fast")
    project.environment["WHERE_IT_IS"] = "another"
    assert again() == ("succeeded", "7 fast")
    (folder / "pipeline-platform.toml").write_text(MAPPING.replace("fast", "slow"))
    assert again() == ("succeeded", "7 slow")


def test_cluster_settings_are_recorded(project: Project, platforms: Path) -> None:
    mapped(project, platforms)
    document, said = run(project, platforms / "keeping-secrets.yaml")
    kept = document["tasks"][0]["platform"]
    assert kept["podMetadata"] == {"labels": {"team": "blue"}, "annotations": {"why": "because"}}
    assert kept["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert kept["nodeSelector"] == {"labels": {"disk": "ssd"}}
    assert kept["imagePullPolicy"] == "Always"
    assert kept["securityContext"] == {"runAsUser": "12345"}
    assert "tasks run as your user, not as the users that they name" in said


def test_names_from_outputs_of_tasks(project: Project, platforms: Path) -> None:
    mapping = mapped(project, platforms, beside=False) / "pipeline-platform.toml"
    platform = ("--platform", mapping)
    document, _ = run(project, platforms / "naming.yaml", "-p", "which=settings", *platform)
    assert outputs(document)["show-variables"] == {
        "MODE": "fast",
        "GONE": None,
        "POD": "naming-r1-show-variables",
        "TEAM": "blue",
        "SPACE": "local",
    }
    document, _ = run(project, platforms / "naming.yaml", "-p", "which=others", *platform, status=1)
    assert "there is no ConfigMap others here" in document["error"]


def test_a_volume_is_created_shared_and_deleted(project: Project, placed: Path) -> None:
    document, _ = run(project, placed / "sharing-volumes.yaml")
    found = outputs(document)
    assert found["write-down"] == "then first"
    assert found["write-down-2"] == "first then first second"
    assert document["tasks"][0]["outputs"] == {"name": "sharing-volumes-r1-shared"}
    assert list((project / "pipeline-volumes").iterdir()) == []
    document, _ = run(project, placed / "sharing-volumes.yaml")  # nothing of it is reused
    assert outputs(document)["write-down-2"] == "first then first second"


def test_tasks_have_volumes_of_their_own(project: Project, placed: Path) -> None:
    """One path is another folder for each of several tasks: they take turns."""
    folder = mapped(project, placed)
    document, _ = run(project, placed / "own-volumes.yaml", "--jobs", "4")
    found = outputs(document)
    assert [found[f"write-down{n}"] for n in ("", "-2", "-3", "-6")] == [
        f"then {word}" for word in ("one", "two", "three", "six")
    ]
    below = folder / "data" / "below"
    assert sorted(one.name for one in below.iterdir()) == ["five", "four"]
    settings = project / "pipeline-runs" / "r1" / "volumes" / "configmaps" / "settings" / "mode"
    assert settings.read_text() == "fast"


def test_an_existing_link_to_the_volume_is_kept(project: Project, placed: Path) -> None:
    folder = mapped(project, placed)
    (folder / "data" / "below").mkdir(exist_ok=True)
    link = placed / "mounts" / "own"
    link.symlink_to(folder / "data" / "below")
    run(project, placed / "own-volumes.yaml")
    assert link.is_symlink()
    link.unlink()
    link.mkdir()
    document, _ = run(project, placed / "own-volumes.yaml", status=2)
    assert "own already exists, and is not this volume" in document["error"]["message"]
    link.rmdir()


@pytest.mark.parametrize(
    ("name", "mapping", "message", "hint"),
    [
        (
            "keeping-secrets",
            "",
            "exec-use-secrets.secretAsEnv[1]: there is no secret database here",
            '[secrets.database]\ntoken = { env = "VARIABLE" }',
        ),
        (
            "keeping-secrets",
            MAPPING.replace("[configmaps.settings]", "[configmaps.others]"),
            "exec-use-secrets.configMapAsEnv[0]: there is no ConfigMap settings here",
            '[configmaps.settings]\nmode = "VALUE"',
        ),
        (
            "keeping-secrets",
            MAPPING.replace("token =", "tokens ="),
            "the secret database has no key token here",
            "[secrets.database]",
        ),
        (
            "own-volumes",
            "[configmaps.settings]\nmode = 'a'",
            "exec-write-down-4.pvcMount[0]: there is no volume data here",
            '[pvcs]\ndata = "FOLDER"',
        ),
        (
            "nowhere-to-mount",
            "",
            "exec-write-down.emptyDirMounts[0].mountPath: /etc/passwd/data cannot be created",
            "mount it at a path that you may create",
        ),
    ],
)
def test_missing_resources_are_refused_before_anything_runs(
    project: Project, platforms: Path, name: str, mapping: str, message: str, hint: str
) -> None:
    folder = mapped(project, platforms)
    (folder / "pipeline-platform.toml").write_text(mapping)
    error = run(project, platforms / f"{name}.yaml", status=2)[0]["error"]
    assert error["code"] == "pipeline-refused"
    assert message in error["message"]
    assert hint in error["hint"]
    assert project.command("pipeline", "list", "--json").stdout.strip() == b"[]"


def test_the_time_limit_of_a_task(project: Project, platforms: Path) -> None:
    document, _ = run(project, platforms / "late.yaml", status=1)
    found = {task["name"]: task for task in document["tasks"]}
    assert found["take-long"]["error"] == "it took longer than its 1 seconds"
    assert found["name-of"]["state"] == "succeeded"


def test_tasks_share_a_workspace(project: Project, platforms: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("as it was")
    words = (platforms / "working-together.yaml", "-p", f"uri={tmp_path / 'data'}")
    document, _ = run(project, *words)
    assert document["outputs"] == {"Output": "one two"}
    workspace = project / "pipeline-runs" / "r1" / "workspace"
    found = outputs(document)["change"]
    assert found == f"as it was changed in {workspace}/.artifacts/importer/data"
    assert (tmp_path / "data").read_text() == "as it was"
    document, _ = run(project, *words)  # another run has another workspace
    assert document["outputs"] == {"Output": "one two"}
    document, _ = run(project, words[0], "-p", "uri=s3://bucket/data", status=1)
    assert "s3://bucket/data is not on this machine" in document["error"]


def test_the_time_limit_of_a_run(project: Project, platforms: Path) -> None:
    document, _ = run(project, platforms / "too-late.yaml", status=1)
    assert (document["state"], document["error"]) == ("failed", "it took longer than its 2 seconds")
    assert [task["state"] for task in document["tasks"]] == ["canceled"]


def test_an_inner_pipeline_is_retried_after_its_backoff(
    project: Project, platforms: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "tries"
    folder.mkdir()
    document, _ = run(project, platforms / "trying-again.yaml", "-p", f"folder={folder}")
    assert document["outputs"] == {"Output": 3}
    assert len(list(folder.iterdir())) == 3


def test_a_resumed_run_uses_the_same_mapping(
    project: Project, platforms: Path, tmp_path: Path
) -> None:
    mapped(project, platforms)
    run(project, platforms / "going-on.yaml", "-p", f"mark={tmp_path / 'mark'}", status=1)
    ran = project.command("pipeline", "resume", "r1", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["outputs"] == {"Output": f"fast{len(PASSWORD)}"}


def test_secrets_of_a_killed_run_are_removed_by_the_next(
    project: Project, platforms: Path, tmp_path: Path
) -> None:
    mapped(project, platforms)
    (platforms / "mounts").mkdir(exist_ok=True)
    mark = tmp_path / "mark"
    words = [*CLEW, "pipeline", "run", platforms / "dying.yaml", "-p", f"mark={mark}"]
    before = set(Path("/dev/shm").glob("clew-secrets-*"))
    with subprocess.Popen(
        words, cwd=project.folder, env=project.environment, stderr=subprocess.DEVNULL
    ) as process:
        while not mark.exists():
            assert process.poll() is None
            time.sleep(0.01)
        (left,) = set(Path("/dev/shm").glob("clew-secrets-*")) - before
        assert left.stat().st_mode & 0o777 == 0o700
        process.kill()
    assert left.exists()
    (platforms / "mounts" / "dying").unlink()  # a link is left to its user
    run(project, platforms / "measuring-secrets.yaml")
    assert not left.exists()


def test_names_from_outside_a_loop_and_missing_names(project: Project, platforms: Path) -> None:
    mapped(project, platforms)
    document, _ = run(project, platforms / "optional-names.yaml")
    found = outputs(document)
    assert [found[f"for-loop-2/{n}/each"] for n in (0, 1)] == ["afast-", "bfast-"]
