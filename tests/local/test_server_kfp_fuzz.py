"""Whatever is sent to Kubeflow's API, the answer is one of its own, and never a failure."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.server import Server
from tests.unit.pipelines.compiled_pipelines import document, leaf, task

NOBODY = "0" * 32
PIPELINE: dict[str, Any] = document({"one": task("comp")}, {"comp": leaf()})
TIMES = {"start_time": "2030-01-01T00:00:00Z", "end_time": "2031-01-01T00:00:00Z"}
CALLED = {"display_name": "it", "description": "why", "tags": {"a": "b"}, "namespace": ""}
COMMON = {
    **CALLED,
    "experiment_id": NOBODY,  # so that nothing is run
    "runtime_config": {"parameters": {"a": 1}, "pipeline_root": "s3://b"},
    "service_account": "robot",
    "pipeline_spec": {"pipeline_spec": PIPELINE, "platform_spec": {"platforms": {}}},
}
BODIES: dict[str, dict[str, Any]] = {
    "experiments": CALLED,
    "pipelines": {**CALLED, "name": "it"},
    "pipelines/create": {"pipeline": CALLED, "pipeline_version": COMMON},
    f"pipelines/{NOBODY}/versions": COMMON,
    "runs": {**COMMON, "pipeline_version_reference": {"pipeline_id": NOBODY}},
    "recurringruns": {
        **COMMON,
        "mode": "DISABLE",
        "max_concurrency": "1",
        "no_catchup": True,
        "trigger": {"cron_schedule": {**TIMES, "cron": "0 0 0 1 1 *"}},
    },
}
LONG = "x" * 70_000
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**62, 2**66)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(["", "\0", "\ud800", "%", "9" * 30, "0001-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
OPERATIONS = st.sampled_from([*range(11), "EQUALS", "IN", "IS_SUBSTRING", "LESS_THAN", None])
KEYS = st.sampled_from(
    ["id", "name", "created_at", "state", "status", "tags", "tags.a", "namespace", "finished_at"]
)
VALUES = st.sampled_from(
    ["stringValue", "timestampValue", "intValue", "longValue", "stringValues", "longValues"]
)
PREDICATES = st.builds(
    lambda key, operation, name, value: {"key": key, "operation": operation, name: value},
    KEYS,
    OPERATIONS,
    VALUES,
    JSON | st.builds(lambda value: {"values": [value]}, JSON),
)
FILTERS = st.builds(
    lambda found: json.dumps({"predicates": found}), st.lists(PREDICATES, max_size=5)
)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ASKED = st.fixed_dictionaries(
    {},
    optional={
        "page_size": st.integers().map(str) | WORDS,
        "page_token": WORDS,
        "sort_by": st.builds(lambda key, way: f"{key} {way}".strip(), KEYS, WORDS),
        "filter": FILTERS | WORDS,
        "experiment_id": WORDS,
    },
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, Any]:
    """A good one, in which something is something else."""
    path = draw(st.sampled_from(sorted(BODIES)))
    body: Any = copy.deepcopy(BODIES[path])
    inside = body
    while True:
        key = draw(st.sampled_from(sorted(inside)))
        if isinstance(inside[key], dict) and inside[key] and draw(st.booleans()):
            inside = inside[key]
            continue
        if draw(st.booleans()):
            inside[key] = draw(JSON | st.just(LONG))
        else:
            del inside[key]
        return path, body


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx2.Client]:
    with server.client(base_url=f"{server.address}/apis/v2beta1/") as found:
        yield found


def proper(answer: httpx2.Response) -> None:
    assert answer.status_code in (200, 400, 404, 409), answer.text
    if answer.status_code != 200:
        assert set(answer.json()) == {"error", "code", "message", "details"}


@given(bodies())
def test_bodies(client: httpx2.Client, sent: tuple[str, Any]) -> None:
    path, body = sent
    proper(client.post(path, content=json.dumps(body)))


@given(st.sampled_from(["runs", "pipelines", "experiments", "recurringruns"]), ASKED)
def test_lists(client: httpx2.Client, path: str, asked: dict[str, str]) -> None:
    proper(client.get(path, params=asked))


@given(
    st.sampled_from(["GET", "DELETE", "POST"]),
    st.sampled_from(["runs", "pipelines", "experiments", "recurringruns"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="./"), min_size=1),
    st.sampled_from(["", ":terminate", ":archive", ":unarchive", ":enable", "/versions"]),
)
def test_ids(client: httpx2.Client, method: str, path: str, name: str, deed: str) -> None:
    from urllib.parse import quote

    answer = client.request(method, f"{path}/{quote(name, safe='')}{deed}", content="{}")
    assert answer.status_code in (200, 400, 404, 405), answer.text


@given(st.binary(max_size=200), st.sampled_from(["upload", "upload_version"]))
def test_uploads(client: httpx2.Client, data: bytes, path: str) -> None:
    files = {"uploadfile": ("p.yaml", data)}
    asked = {"pipelineid": NOBODY}
    proper(client.post(f"pipelines/{path}", files=files, params=asked))
