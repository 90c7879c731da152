"""The table of executions and runs, and the overview, of a real server."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from tests.driver import Project
from tests.local.server import run_server

TRAIN = """\
import json, sys
rate = float(sys.argv[2])
json.dump({"accuracy": 1 - rate}, open("metrics.json", "w"))
if rate > 0.5:
    sys.exit("the rate is too high")
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """Of a project with e1, e2 and e3, which failed."""
    project = Project(tmp_path_factory.mktemp("activities"))
    Path(project / "train.py").write_text(TRAIN)
    for rate in ("0.1", "0.2", "0.9"):
        project.command("exec", "python3", "train.py", "--rate", rate)
    with run_server(project) as server, server.client(base_url=f"{server.address}/api/v1") as asked:
        yield asked


def test_activities_are_filtered_and_sorted(client: httpx2.Client) -> None:
    page = client.get("/activities", params={"sort": "metrics.accuracy", "order": "asc"}).json()
    assert [one["id"] for one in page["activities"]] == ["e3", "e2", "e1"]
    assert (page["total"], page["metrics"], page["unmeasured"]) == (3, ["accuracy"], 0)
    assert page["activities"][2]["parameters"]["rate"] == 0.1
    found = client.get("/activities", params={"q": "metrics.accuracy > 0.5", "limit": 1}).json()
    assert [one["id"] for one in found["activities"]] == ["e2"]
    more = client.get(
        "/activities", params={"q": "metrics.accuracy > 0.5", "after": found["next"]}
    ).json()
    assert [one["id"] for one in more["activities"]] == ["e1"]
    assert (more["next"], more["total"]) == (None, None)


def test_the_overview_shows_what_failed_and_why(client: httpx2.Client) -> None:
    overview = client.get("/overview").json()
    (failed,) = overview["failed"]
    assert (failed["id"], failed["error"]) == ("e3", "the rate is too high")
    assert overview["recent"][0]["main_metric"] == {"name": "accuracy", "value": 0.8}
    assert overview["counts"] == {"executions": 3, "runs": 0, "running": 0, "failed": 1}
    assert overview["storage"]["bytes"] > 0
    assert overview["storage"]["free"] > 0


def test_a_comparison_shows_what_differs(client: httpx2.Client) -> None:
    found = client.get("/comparison", params={"id": ["e1", "e2", "e3"]}).json()
    assert [entry["id"] for entry in found["entries"]] == ["e1", "e2", "e3"]
    rows = {
        (section["name"], row["name"]): row
        for section in found["sections"]
        for row in section["rows"]
    }
    assert rows["parameters", "rate"]["values"] == [0.1, 0.2, 0.9]
    assert rows["parameters", "rate"]["differs"]
    assert rows["metrics", "accuracy"]["values"][:2] == [0.9, 0.8]
    code = rows["code", "train.py"]
    assert not code["differs"]
    content = client.get(f"/versions/{code['versions'][0]}/content")
    assert content.text == TRAIN
    assert rows["outputs", "metrics.json"]["differs"]
    assert {"environment", "command"} <= {section["name"] for section in found["sections"]}
    for ids, status in ((["e1"], 422), (["e1", "e99"], 404), (["e1"] * 11, 422)):
        assert client.get("/comparison", params={"id": ids}).status_code == status
