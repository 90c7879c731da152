"""Notebooks, TensorBoards and viewers with real processes."""

import http.client
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.unit.workloads.local.conftest import StartBackend
from tests.unit.workloads.local.resources import key, notebook, tensorboard, viewer, volume
from tests.wait import wait_until

from clew.errors import Busy, ClewError, Exists, NotAllowed, NotFound, UsageError
from clew.kube.objects import Json, Key, condition_of, dig, name_of
from clew.kube.workload_tokens import HEADER
from clew.project_directory import ProjectDirectory
from clew.workloads.annotations import STOPPED
from clew.workloads.local.local_backend import LocalBackend
from clew.workloads.local.processes.running_process import Address
from clew.workloads.local.resource_files import ResourceFiles

VIEWER, NOTEBOOK, VOLUME = key(viewer()), key(notebook()), key(volume())
STOP = {"metadata": {"annotations": {STOPPED: "2026-03-01T11:00:00Z"}}}
START = {"metadata": {"annotations": {STOPPED: None}}}
BROKEN = {"PYTHONHOME": "/nonexistent"}
"""With it no Python program starts."""


def ready(backend: LocalBackend, key: Key) -> Address:
    return wait_until(f"{key.name} is ready", lambda: backend.address(key))


def reason(backend: LocalBackend, key: Key) -> str:
    return str(condition_of(backend.get(key), "Ready").get("reason"))


def wait_for(backend: LocalBackend, key: Key, wanted: str) -> str:
    """Wait for a reason; returns its message."""
    wait_until(wanted, lambda: reason(backend, key) == wanted)
    return str(condition_of(backend.get(key), "Ready").get("message"))


def pid(backend: LocalBackend, key: Key) -> int:
    (pod,) = backend.pods_of(key)
    found: int = pod["status"]["containerStatuses"][0]["pid"]
    return found


def ask(address: Address, path: str, token: str | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=60)
    given = headers if token is None else {HEADER: token, **headers}
    connection.request("GET", path, headers=given)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def create(backend: LocalBackend, *resources: Json) -> None:
    for resource in resources:
        backend.create(resource)


def test_only_the_servers_token_opens_a_process(start_backend: StartBackend) -> None:
    """Another user of the machine can connect to the port, and gets nothing."""
    backend = start_backend()
    create(backend, volume(), viewer(), notebook())
    for resource, path in (
        (VIEWER, "/pvcviewers/local/files/"),
        (NOTEBOOK, "/notebook/local/first/api/contents"),
    ):
        address = ready(backend, resource)
        status, body = ask(address, path, address.token)
        assert status == 200
        for wrong in (None, "", "x", address.token[:-1], "\u00e9"):
            status, body = ask(address, path, wrong)
            assert status in (302, 401, 403), (resource, wrong)
            assert b"data" not in body
        query = f"{path}?token={address.token}&{HEADER}={address.token}"
        assert ask(address, query)[0] in (302, 401, 403), "only the header counts"


def test_children_get_no_token(
    start_backend: StartBackend, directory: ProjectDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_TOKEN", "precious-token")
    monkeypatch.setenv("CLEW_GRAPH", "postgresql://precious@x")
    backend = start_backend()
    create(backend, volume(), viewer(), notebook(variables={"MINE": "yes"}))
    project_token = directory.token.read_text().strip()
    for resource in (VIEWER, NOTEBOOK):
        address = ready(backend, resource)
        for process in family(pid(backend, resource)):
            seen = b"".join(
                Path(f"/proc/{process}/{name}").read_bytes() for name in ("environ", "cmdline")
            )
            for secret in ("precious", address.token, project_token):
                assert secret.encode() not in seen
        assert address.token not in backend.read_log("local", pod_of(backend, resource), "")
    assert b"MINE=yes" in Path(f"/proc/{pid(backend, NOTEBOOK)}/environ").read_bytes()


def family(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [parent, *(one for child in children for one in family(int(child)))]


def pod_of(backend: LocalBackend, key: Key) -> str:
    return str(backend.pods_of(key)[0]["metadata"]["name"])


def test_stop_start_and_delete(start_backend: StartBackend, directory: ProjectDirectory) -> None:
    backend = start_backend()
    create(backend, volume(), viewer())
    first = ready(backend, VIEWER)
    process = pid(backend, VIEWER)
    backend.merge_patch(VIEWER, STOP)
    message = wait_for(backend, VIEWER, "Stopped")
    assert "Start it" in message
    assert backend.address(VIEWER) is None
    assert gone(process)
    backend.merge_patch(VIEWER, START)
    assert ready(backend, VIEWER).token != first.token
    process = pid(backend, VIEWER)
    backend.delete(VIEWER)
    wait_until("its deletion", lambda: not backend.list("PVCViewer", "local"))
    assert gone(process)
    assert list((directory.path / "workloads" / "logs").iterdir()) == []


def test_a_volume_in_use_is_deleted_when_it_is_free(
    start_backend: StartBackend, directory: ProjectDirectory
) -> None:
    backend = start_backend()
    create(backend, volume(), viewer())
    ready(backend, VIEWER)
    place = directory.path / "volumes" / "data"
    (place / "x").write_text("1")
    backend.delete(VOLUME)
    backend.merge_patch(VIEWER, {"metadata": {"labels": {"a": "b"}}})
    wait_until("another round", lambda: backend.get(VIEWER)["metadata"]["labels"])
    assert (place / "x").exists()
    assert dig(backend.get(VOLUME), "metadata", "deletionTimestamp")
    backend.delete(VIEWER)
    names = lambda: [name_of(one) for one in backend.list(VOLUME.kind, "local")]  # noqa: E731
    wait_until("its deletion", lambda: VOLUME.name not in names())
    assert not place.exists()


def test_a_crash_is_explained_and_repaired(start_backend: StartBackend) -> None:
    backend = start_backend()
    create(backend, volume(), viewer())
    ready(backend, VIEWER)
    os.kill(pid(backend, VIEWER), signal.SIGKILL)
    expected = ["Started", "Crashing", "Started"]
    wait_until(
        "the repair",
        lambda: [event["reason"] for event in backend.list("Event", "local")] == expected,
    )
    (pod,) = backend.pods_of(VIEWER)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1


def test_what_it_printed_explains_a_crash(start_backend: StartBackend) -> None:
    backend = start_backend()
    create(backend, volume(), notebook(variables=BROKEN))
    message = wait_for(backend, NOTEBOOK, "Crashing")
    assert "It ended with status 1" in message
    assert "No module named" in message
    backend.delete(NOTEBOOK)
    wait_until("its deletion", lambda: not backend.list("Notebook", "local"))


def test_an_edit_restarts_it_if_it_concerns_it(start_backend: StartBackend) -> None:
    backend = start_backend()
    create(backend, volume(), volume("more"), viewer())
    ready(backend, VIEWER)
    process = pid(backend, VIEWER)
    backend.merge_patch(VIEWER, {"metadata": {"labels": {"a": "b"}}})
    backend.merge_patch(VIEWER, {"spec": {"unknown": "x"}})
    backend.merge_patch(VIEWER, {"spec": {"pvc": "more"}})
    wait_until("the end of the old one", lambda: gone(process))
    address = ready(backend, VIEWER)
    assert b"more" in Path(f"/proc/{family(pid(backend, VIEWER))[1]}/cmdline").read_bytes()
    assert ask(address, "/pvcviewers/local/files/", address.token)[0] == 200


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (viewer(claim="missing"), "VolumeMissing"),
        (tensorboard(logs="pvc://missing/x"), "VolumeMissing"),
        (notebook(inner="missing"), "VolumeMissing"),
    ],
)
def test_what_cannot_start_says_why(
    start_backend: StartBackend, made: Json, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "clew.workloads.local.installer.Interpreters.find", lambda *_: sys.executable
    )
    backend = start_backend()
    create(backend, volume(), made)
    message = wait_for(backend, key(made), expected)
    assert "missing" in message
    assert backend.address(key(made)) is None


def test_it_starts_as_soon_as_its_volume_exists(start_backend: StartBackend) -> None:
    backend = start_backend()
    create(backend, viewer())
    wait_for(backend, VIEWER, "VolumeMissing")
    create(backend, volume())
    ready(backend, VIEWER)


def test_a_program_that_is_missing_can_be_installed(
    start_backend: StartBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {"tensorboard"}
    monkeypatch.setattr(
        "clew.workloads.local.installer.Interpreters.find",
        lambda _, name: None if name in missing else sys.executable,
    )
    backend = start_backend()
    create(backend, volume(), tensorboard())
    message = wait_for(backend, key(tensorboard()), "NotInstalled")
    assert "pip install tensorboard" in message


def test_the_next_server_starts_what_should_run(
    start_backend: StartBackend, directory: ProjectDirectory
) -> None:
    backend = start_backend()
    create(backend, volume(), viewer(), viewer("stopped"))
    stopped = key(viewer("stopped"))
    ready(backend, VIEWER)
    backend.merge_patch(stopped, STOP)
    wait_for(backend, stopped, "Stopped")
    with pytest.raises(Busy):
        LocalBackend(directory)
    process = pid(backend, VIEWER)
    version = backend.version()
    backend.close()
    backend.close = lambda: None  # type: ignore[method-assign]
    assert gone(process)
    again = start_backend()
    assert again.version() >= version
    ready(again, VIEWER)
    assert again.address(stopped) is None
    assert again.pods_of(stopped) == []


def test_a_kill_between_the_file_and_the_process_loses_nothing(
    start_backend: StartBackend, directory: ProjectDirectory
) -> None:
    """As if a server was killed right after it had written the resources."""
    files = ResourceFiles(directory.path / "workloads" / "resources")
    for made in (volume(), viewer(), viewer("half-deleted")):
        files.create(made)
    files.mark_deleted(key(viewer("half-deleted")))
    backend = start_backend()
    ready(backend, VIEWER)
    wait_until("the deletion", lambda: len(backend.list("PVCViewer", "local")) == 1)


def test_damaged_files_stop_nobody(
    start_backend: StartBackend, directory: ProjectDirectory
) -> None:
    files = ResourceFiles(directory.path / "workloads" / "resources")
    files.create(volume())
    files.create(viewer())
    odd = {**notebook("odd"), "metadata": {"name": "odd", "uid": "u", "resourceVersion": "1"}}
    odd["spec"] = {"template": {"spec": {"containers": "x", "volumes": 3}}}
    place = directory.path / "workloads" / "resources" / "notebook"
    place.mkdir()
    (place / "odd.json").write_text(json.dumps(odd))
    (place / "damaged.json").write_text("{")
    backend = start_backend()
    ready(backend, VIEWER)
    assert backend.address(key(odd)) is None


def test_the_root_of_a_notebook_has_links_only(
    start_backend: StartBackend, directory: ProjectDirectory
) -> None:
    backend = start_backend()
    create(backend, volume(), notebook())
    address = ready(backend, NOTEBOOK)
    root = directory.path / "workloads" / "roots" / "first"
    assert {path.name: path.resolve() for path in root.iterdir()} == {
        "data": directory.path / "volumes" / "data",
        "project": directory.root,
    }
    status, body = ask(address, "/notebook/local/first/api/contents", address.token)
    assert status == 200
    assert {entry["name"] for entry in json.loads(body)["content"]} == {"data", "project"}


def test_the_project_is_a_volume_that_nobody_changes(start_backend: StartBackend) -> None:
    backend = start_backend()
    project = Key("PersistentVolumeClaim", "local", "project")
    assert backend.get(project)["status"]["phase"] == "Bound"
    with pytest.raises(NotAllowed):
        backend.delete(project)
    with pytest.raises(NotAllowed):
        backend.merge_patch(project, STOP)
    with pytest.raises(Exists):
        backend.create(volume("project"))


def test_dry_runs_create_nothing(start_backend: StartBackend) -> None:
    backend = start_backend()
    backend.create(volume(), dry_run=True)
    backend.create(volume())
    with pytest.raises(Exists):
        backend.create(volume(), dry_run=True)


@pytest.mark.parametrize(
    "pod", ["", "-0", "x", "../first-0", "first-0/../x", "missing-0", "a" * 300 + "-0"]
)
def test_there_are_no_logs_of_others(start_backend: StartBackend, pod: str) -> None:
    backend = start_backend()
    with pytest.raises(ClewError) as raised:
        backend.read_log("local", pod, "x")
    assert raised.value.http_status == 404


def test_other_namespaces_and_kinds_are_empty(start_backend: StartBackend) -> None:
    backend = start_backend()
    with pytest.raises(NotFound):
        backend.list("Notebook", "other")
    assert list(backend.list("PodDefault", "local")) == []
    with pytest.raises(UsageError):
        backend.create({**notebook(), "kind": "Secret"})
