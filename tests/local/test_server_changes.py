"""The stream of changes: the versions of all topics at once, then again after every change."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from tests.driver import Project
from tests.local.server import run_server

Topics = dict[str, str]


@contextmanager
def _following(client: httpx2.Client) -> Iterator[Iterator[Topics]]:
    with client.stream("GET", "/api/v1/changes") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        yield _topics(response.iter_lines())


def _topics(lines: Iterator[str]) -> Iterator[Topics]:
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))["topics"]


def test_changes_are_seen_on_all_servers_and_after_a_restart(
    tmp_path: Path, graph: dict[str, Any]
) -> None:
    project = Project(tmp_path, **graph)
    with run_server(project) as one, one.client() as first:
        with (
            run_server(project) as other,
            other.client() as second,
            _following(first) as here,
            _following(second) as there,
        ):
            before = next(here)
            assert before == next(there)
            assert before["workloads"] == "none"
            project.sh("echo 1 > out.txt")
            for events in (here, there):
                after = next(t for t in events if t["executions"] != before["executions"])
                assert after["runs"] == before["runs"]
        with (
            run_server(project) as again,
            again.client() as second,
            _following(first) as here,
            _following(second) as there,
        ):
            assert next(here) == next(there)
