"""TensorBoards on a real cluster: what is asked for reaches their Pods."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser import launch_browser
from tests.cluster.jupyter import server  # noqa: F401 - a fixture
from tests.cluster.kube import Kube, pod
from tests.cluster.location import address_for_pods
from tests.cluster.operator import (  # noqa: F401 - operator is a fixture
    JUPYTER,
    Operator,
    claim,
    operator,
    reissued_events,
    wait_for_reason,
)
from tests.local.remotes import KEYS
from tests.local.server import Server
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def tensorboard(logspath: str, name: str = "curves", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tensorboard.kubeflow.org/v1alpha1",
        "kind": "Tensorboard",
        "metadata": {"name": name, **metadata},
        "spec": {"logspath": logspath},
    }


def test_an_edit_of_the_path_reaches_it(kube: Kube) -> None:
    kube.apply(claim("logs"), tensorboard("pvc://logs/a"))
    wait_until("it has a Pod", lambda: kube.get("pods", "--selector=app=curves")["items"])
    kube.apply(tensorboard("pvc://logs/b"))

    def shown() -> bool:
        pods = kube.get("pods", "--selector=app=curves")["items"]
        paths = [p["spec"]["containers"][0]["volumeMounts"][0].get("subPath") for p in pods]
        return paths == ["b"]

    wait_until("the new path is mounted", shown)


def test_events_of_a_tensorboard_with_a_long_name_are_reissued(kube: Kube) -> None:
    """Kubernetes cuts the names of its Pods."""
    name = "x" * 50
    kube.apply(tensorboard("pvc://nowhere", name))
    wait_for_reason(kube, f"tensorboard/{name}", "VolumeMissing")
    events = wait_until(
        "events are said again", lambda: reissued_events(kube, f"tensorboard/{name}")
    )
    assert any("nowhere" in event["message"] for event in events)


def test_a_path_that_cannot_work_is_named(kube: Kube) -> None:
    kube.apply(tensorboard("pvc://logs/../x"))
    found = wait_for_reason(kube, "tensorboard/curves", "InvalidSpec")
    assert "leads out" in found["message"]
    assert kube.get("deployments")["items"] == []


@pytest.fixture
def store(kube: Kube, tmp_path: Path) -> Iterator[str]:
    """The address of an S3 server that checks signatures, as Pods see it."""
    (tmp_path / "store" / "bucket").mkdir(parents=True)
    words = [Path(sys.executable).with_name("rclone"), "serve", "s3", tmp_path / "store"]
    words += ["--auth-key", ",".join(KEYS.values()), "--addr", f"{address_for_pods(kube)}:0"]
    with subprocess.Popen(
        words,
        env={**os.environ, "RCLONE_CONFIG": os.devnull, "HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            found = next(filter(None, map(re.compile(r"http://[^/]+").search, process.stderr)))
            yield found[0]
        finally:
            process.kill()


TRAIN = """
import time
from pathlib import Path
from obstore.store import S3Store
from tensorboardX import SummaryWriter

store, writer = S3Store("bucket"), SummaryWriter("/tmp/run")
for step in range(1_000_000):
    writer.add_scalar("loss", 1 / (step + 1), step)
    writer.flush()
    for file in Path("/tmp/run").iterdir():
        store.put(f"runs/first/{file.name}", file.read_bytes())
    time.sleep(1)
"""


def test_an_object_store_is_shown_while_training_writes(
    kube: Kube,
    store: str,
    server: Server,  # noqa: F811
    tmp_path: Path,
) -> None:
    kube.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "keys"},
            "stringData": {
                **KEYS,
                "AWS_ENDPOINT_URL": store,
                "AWS_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
            },
        },
        pod(
            *("trains", "python3", "-c", TRAIN),
            image=JUPYTER,
            envFrom=[{"secretRef": {"name": "keys"}}],
        ),
        tensorboard("s3://bucket/runs", annotations={"clew.dev/secret": "keys"}),
    )
    kube.wait_for("tensorboard/curves", "condition=Ready")
    with server.apps_client() as user:

        def seen() -> int:
            place = f"/tensorboard/{kube.namespace}/curves/data/plugin/scalars/scalars"
            answer = user.get(place, params={"run": "first", "tag": "loss"})
            return max(point[1] for point in answer.json()) if answer.is_success else -1

        first = wait_until("there are curves", lambda: max(seen(), 0))
        wait_until("they advance", lambda: seen() > first)
    with launch_browser() as browser, browser.new_page() as page:
        page.goto(f"{server.address}/?token={server.token}")
        page.goto(f"{server.address}/tensorboard/{kube.namespace}/curves/")
        expect(page.locator("body")).to_contain_text("loss")
