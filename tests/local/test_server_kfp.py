"""Kubeflow's API, spoken to without its client: what is refused and how, bad uploads, uploads that
break off, pages while others write."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import yaml
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.unit.pipelines.compiled_pipelines import document, leaf, task

import clew
from clew import db
from clew.prov.row_keys import project_key

ROOT = "/apis/v2beta1"
NOBODY = "0" * 32
KINDS = ("runs", "pipelines", "experiments", "recurringruns")
PIPELINE: dict[str, Any] = document({"one": task("comp")}, {"comp": leaf()})
TEXT = yaml.safe_dump(PIPELINE).encode()


@pytest.fixture
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client(base_url=f"{server.address}{ROOT}/") as found:
        yield found


def upload(client: httpx2.Client, data: bytes, file: str = "p.yaml", **asked: str) -> Any:
    files = {"uploadfile": (file, data, "application/octet-stream")}
    return client.post("pipelines/upload", params=asked, files=files)


def refusal(answer: httpx2.Response, status: int, code: int) -> str:
    """An error has one shape, whatever is wrong; this is its sentence."""
    assert answer.status_code == status, answer.text
    found = answer.json()
    assert set(found) == {"error", "code", "message", "details"}
    assert (found["code"], found["details"]) == (code, [])
    assert found["error"] == found["message"] != ""
    assert "Traceback" not in answer.text
    return str(found["message"])


@pytest.mark.parametrize(
    "path",
    [
        f"pipelines/{NOBODY}",
        f"pipelines/{NOBODY}/versions",
        f"pipelines/{NOBODY}/versions/{NOBODY}",
        "pipelines/names/nothing",
        f"experiments/{NOBODY}",
        f"runs/{NOBODY}",
        f"recurringruns/{NOBODY}",
        "runs/no%20id%00at%20all",
        "runs/%F0%9F%98%80",
        "nothing/at/all",
    ],
)
def test_what_is_not_there_is_not_found(client: httpx2.Client, path: str) -> None:
    refusal(client.get(path), 404, 5)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("POST", f"runs/{NOBODY}:{deed}") for deed in ("terminate", "retry", "unarchive")),
        ("POST", f"runs/{NOBODY}:archive"),
        *(("POST", f"experiments/{NOBODY}:{deed}") for deed in ("archive", "unarchive")),
        *(("POST", f"recurringruns/{NOBODY}:{deed}") for deed in ("enable", "disable")),
        *(("DELETE", f"{kind}/{NOBODY}") for kind in KINDS),
    ],
)
def test_what_is_not_there_cannot_be_changed(client: httpx2.Client, method: str, path: str) -> None:
    refusal(client.request(method, path), 404, 5)


RUN = {"display_name": "r", "pipeline_spec": PIPELINE}
BACKWARDS = {"start_time": "2030-01-02T00:00:00Z", "end_time": "2030-01-01T00:00:00Z"}


def every(seconds: str, **times: str) -> dict[str, Any]:
    """A trigger."""
    return {"periodic_schedule": {"interval_second": seconds, **times}}


TRIGGER = every("3600")


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("experiments", {}, "display_name"),
        ("experiments", {"display_name": "   "}, "display_name"),
        ("experiments", {"display_name": 1}, "display_name"),
        ("experiments", {"display_name": "x" * 256}, "longer"),
        ("experiments", {"display_name": "a\0b"}, "invalid char"),
        ("experiments", [], "object"),
        ("pipelines", {}, "name"),
        ("pipelines", {"name": "a", "tags": {"a": 1}}, "tags"),
        ("pipelines/create", {"pipeline": {"name": "a"}}, "pipeline_spec"),
        ("runs", {"display_name": "r"}, "pipeline_spec"),
        ("runs", {**RUN, "display_name": ""}, "display_name"),
        ("runs", {**RUN, "pipeline_spec": "text"}, "pipeline_spec"),
        ("runs", {**RUN, "pipeline_spec": {}}, "pipelineInfo"),
        ("runs", {**RUN, "pipeline_spec": {"pipeline_spec": 1}}, "not a mapping"),
        ("runs", {**RUN, "pipeline_version_reference": {"pipeline_id": NOBODY}}, "both"),
        ("runs", {**RUN, "pipeline_version_reference": []}, "an object"),
        ("runs", {**RUN, "runtime_config": {"parameters": [1]}}, "parameters"),
        ("runs", {**RUN, "runtime_config": {"pipeline_root": 1}}, "pipeline_root"),
        ("recurringruns", {**RUN}, "trigger"),
        ("recurringruns", {**RUN, "trigger": {}}, "trigger"),
        ("recurringruns", {**RUN, "trigger": {**TRIGGER, "cron_schedule": {}}}, "one of"),
        ("recurringruns", {**RUN, "trigger": {"cron_schedule": {}}}, "cron"),
        ("recurringruns", {**RUN, "trigger": {"cron_schedule": {"cron": "hourly"}}}, "fields"),
        ("recurringruns", {**RUN, "trigger": {"periodic_schedule": {}}}, "interval_second"),
        ("recurringruns", {**RUN, "trigger": every("1e3")}, "integer"),
        ("recurringruns", {**RUN, "trigger": every("-5")}, "interval_second"),
        ("recurringruns", {**RUN, "trigger": every("60", start_time="soon")}, "start_time"),
        ("recurringruns", {**RUN, "trigger": every("60", **BACKWARDS)}, "end_time"),
        ("recurringruns", {**RUN, "trigger": TRIGGER, "max_concurrency": 11}, "max_concurrency"),
        ("recurringruns", {**RUN, "trigger": TRIGGER, "mode": "ON"}, "mode"),
        ("recurringruns", {**RUN, "trigger": TRIGGER, "max_concurrency": "0"}, "max_concurrency"),
        ("recurringruns", {**RUN, "trigger": TRIGGER, "no_catchup": "maybe"}, "no_catchup"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    client: httpx2.Client, path: str, body: Any, why: str
) -> None:
    assert why in refusal(client.post(path, json=body), 400, 3)


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b'"\xff"', b"NaN"])
def test_malformed_json_is_refused(client: httpx2.Client, body: bytes) -> None:
    assert "JSON" in refusal(client.post("runs", content=body), 400, 3)


def test_what_is_nested_too_deep_is_refused(client: httpx2.Client) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    given = {**RUN, "runtime_config": {"parameters": {"deep": deep}}}
    assert "nested" in refusal(client.post("runs", json=given), 400, 3)
    assert "nested" in refusal(client.post("runs", content=b"[" * 100_000), 400, 3)
    assert client.get("runs").status_code == 200


def test_what_belongs_to_nothing_is_not_found(client: httpx2.Client) -> None:
    refusal(client.post("runs", json={**RUN, "experiment_id": NOBODY}), 404, 5)
    known = {"pipeline_version_reference": {"pipeline_id": NOBODY}}
    refusal(client.post("runs", json={"display_name": "r", **known}), 404, 5)


@pytest.mark.parametrize("path", KINDS)
def test_lists_refuse_what_makes_no_sense(client: httpx2.Client, path: str) -> None:
    """The tests of `list_pages` try every kind of nonsense."""
    for asked in ({"page_size": "-1"}, {"page_token": "x"}, {"sort_by": "x"}, {"filter": "x"}):
        refusal(client.get(path, params=asked), 400, 3)


def test_both_spellings_are_understood(client: httpx2.Client) -> None:
    body = {"displayName": "camel", "pipelineSpec": PIPELINE, "runtimeConfig": {"parameters": {}}}
    made = client.post("runs", json=body).json()
    assert made["display_name"] == "camel"
    assert made["created_at"].endswith("Z")
    assert client.get("runs", params={"pageSize": "1", "sortBy": "created_at desc"}).json()["runs"]


def test_an_empty_list_is_left_out(client: httpx2.Client) -> None:
    wanted = '{"predicates": [{"key": "name", "operation": "EQUALS", "stringValue": "nobody"}]}'
    for path in KINDS:
        assert client.get(path, params={"filter": wanted}).json() == {"total_size": 0}


def test_integers_of_schedules_are_strings(client: httpx2.Client) -> None:
    body = {**RUN, "trigger": {"periodic_schedule": {"interval_second": 3600}}, "mode": "DISABLE"}
    made = client.post("recurringruns", json={**body, "max_concurrency": 2}).json()
    assert made["trigger"]["periodic_schedule"] == {"interval_second": "3600"}
    assert (made["max_concurrency"], made["no_catchup"]) == ("2", False)
    listed = client.get("recurringruns").json()
    assert [one["recurring_run_id"] for one in listed["recurringRuns"]] == [
        made["recurring_run_id"]
    ]
    client.delete(f"recurringruns/{made['recurring_run_id']}")


def test_without_a_version_the_newest_is_run(client: httpx2.Client) -> None:
    made = upload(client, TEXT, name="newest").json()
    where = f"pipelines/{made['pipeline_id']}/versions"
    body = {"name": "second", "pipeline_spec": {**PIPELINE, "pipelineInfo": {"name": "newer"}}}
    second = client.post(where, json=body).json()
    known = {"pipeline_version_reference": {"pipeline_id": made["pipeline_id"]}}
    run = client.post("runs", json={"display_name": "r", **known}).json()
    reference = run["pipeline_version_reference"]
    assert reference["pipeline_version_id"] == second["pipeline_version_id"]
    assert client.get("pipelines/names/newest").json() == made
    client.patch(f"pipelines/{made['pipeline_id']}", json={"description": "better"})
    assert client.get(f"pipelines/{made['pipeline_id']}").json()["description"] == "better"
    refusal(client.delete(f"pipelines/{made['pipeline_id']}"), 400, 3)
    gone = client.delete(f"pipelines/{made['pipeline_id']}", params={"cascade": "true"})
    assert (gone.status_code, gone.json()) == (200, {})
    assert client.get(f"runs/{run['run_id']}").json()["display_name"] == "r"


def test_a_pipeline_has_the_name_that_is_given_or_that_of_its_file(client: httpx2.Client) -> None:
    by_file = upload(client, TEXT, "by file.tar.yaml").json()
    assert (by_file["name"], by_file["display_name"]) == ("by file.tar", "by file.tar")
    asked = {"name": "by/name", "display_name": "By Name", "tags": '{"team": "red"}'}
    by_name = upload(client, TEXT, **asked).json()
    assert (by_name["name"], by_name["display_name"]) == ("by/name", "By Name")
    assert by_name["tags"] == {"team": "red"}
    assert client.get("pipelines/names/by%2Fname").json() == by_name
    assert "already" in refusal(upload(client, TEXT, **asked), 409, 6)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"a: [", "YAML"),
        (b"\xff\xfe", "UTF-8"),
        pytest.param(b"[" * 100_000, "nested", id="nested"),
        (b"PK\x03\x04rubbish", "unpacked"),
    ],
)
def test_bad_packages_are_refused_and_leave_nothing(
    client: httpx2.Client, data: bytes, why: str
) -> None:
    """The tests of `uploads` try every kind of bad package."""
    assert why in refusal(upload(client, data, name="bad"), 400, 3)
    refusal(client.get("pipelines/names/bad"), 404, 5)
    assert client.get("healthz").json() == {"multi_user": False}


def test_a_form_without_a_file_is_refused(client: httpx2.Client) -> None:
    said = refusal(client.post("pipelines/upload", data={"name": "x"}), 400, 3)
    assert "uploadfile" in said
    refusal(client.post("pipelines/upload", content=b"nothing"), 400, 3)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    refusal(client.post("pipelines/upload", content=b"rubbish", headers=headers), 400, 3)
    files = {"uploadfile": ("p.yaml", TEXT)}
    assert "pipelineid" in refusal(client.post("pipelines/upload_version", files=files), 400, 3)
    asked = {"pipelineid": NOBODY}
    refusal(client.post("pipelines/upload_version", files=files, params=asked), 404, 5)


def test_the_largest_package_is_taken_and_a_larger_one_is_not(client: httpx2.Client) -> None:
    more = TEXT + b"sdkVersion: "
    fits = more + b"x" * ((32 << 20) - len(more))
    made = upload(client, fits, name="large")
    assert made.status_code == 200, made.text[:500]
    refusal(upload(client, b"x" * ((32 << 20) + 1), name="larger"), 413, 3)


def kept(project: Project) -> list[Any]:
    """How many rows an upload could have left."""
    own = clew.open(project.folder).directory
    of = (project_key(own.uid),)
    with db.connect(own.graph, address=project.environment.get("CLEW_GRAPH")) as graph:
        tables = ("pipeline", "pipeline_version", "spec")
        return [graph.row(f"SELECT COUNT(*) FROM {name} WHERE project = ?", of) for name in tables]


def begin_upload(server: Server, name: str) -> socket.socket:
    """A whole pipeline is sent, but not the end of the form."""
    where = urlsplit(server.address)
    assert where.hostname is not None
    head = (
        f"POST {ROOT}/pipelines/upload?name={name} HTTP/1.1\r\nHost: {where.netloc}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=cut\r\n\r\n--cut\r\n"
        'Content-Disposition: form-data; name="uploadfile"; filename="p.yaml"\r\n\r\n'
    )
    line = socket.create_connection((where.hostname, where.port or 80))
    line.sendall(head.encode() + TEXT)
    return line


def test_an_upload_that_breaks_off_leaves_nothing(
    served: Project, server: Server, client: httpx2.Client
) -> None:
    before = kept(served)
    begin_upload(server, "broken").close()
    refusal(client.get("pipelines/names/broken"), 404, 5)
    assert kept(served) == before


def test_a_server_that_is_killed_meanwhile_leaves_nothing(
    tmp_path: Path, graph_in_turn: dict[str, str]
) -> None:
    project = Project(tmp_path, **graph_in_turn)
    with run_server(project, "--runs", "2") as server:
        with begin_upload(server, "broken"), server.client() as client:
            assert client.get(f"{ROOT}/pipelines").json() == {"total_size": 0}
            server.process.kill()
        server.process.wait()
    assert kept(project) == [(0,), (0,), (0,)]
    with (
        run_server(project, "--runs", "2") as server,
        server.client(base_url=f"{server.address}{ROOT}/") as client,
    ):
        assert upload(client, TEXT, name="broken").status_code == 200
    assert kept(project) == [(1,), (1,), (1,)]


def test_many_concurrent_requests(server: Server, client: httpx2.Client) -> None:
    """No run is lost, and nobody is refused."""
    experiment = client.post("experiments", json={"display_name": "crowd"}).json()["experiment_id"]
    made: list[str] = []
    failed: list[str] = []

    def work(number: int) -> None:
        with server.client(base_url=f"{server.address}{ROOT}/") as own:
            for turn in range(4):
                body = {**RUN, "display_name": f"{number}/{turn}", "experiment_id": experiment}
                for answer in (
                    own.post("runs", json=body),
                    own.get("runs", params={"experiment_id": experiment}),
                ):
                    if answer.status_code != 200:
                        failed.append(answer.text)
                        return
                    if "run_id" in answer.json():
                        made.append(answer.json()["run_id"])

    crowd = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert failed == []
    asked = {"experiment_id": experiment, "page_size": "200"}
    page = client.get("runs", params=asked).json()
    assert page["total_size"] == 200
    assert {one["run_id"] for one in page["runs"]} == set(made)
    assert json.loads(client.get("healthz").text) == {"multi_user": False}
