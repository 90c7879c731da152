"""Traffic that the culler reads from the metrics of Istio in a real Prometheus."""

import asyncio
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from tests.local.istio_metrics import COUNTERS, IstioMetrics, serve_metrics
from tests.prometheus import prometheus
from tests.unit.kube.sample_resources import pod, tensorboard, viewer
from tests.wait import wait_until

from clew.kube.controller.options import Culling
from clew.kube.culling.activity import ActivityProbe, Traffic, istio_traffic
from clew.kube.culling.idleness import OTHER_LAST_ACTIVITY, Activity, decide
from clew.kube.objects import Json, name_of

LATE = timedelta(seconds=1)
"""Five scrape intervals."""


@pytest.fixture(scope="module")
def istio() -> Iterator[IstioMetrics]:
    with serve_metrics() as made:
        yield made


@pytest.fixture(scope="module")
def metrics(istio: IstioMetrics, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One for all tests: each has resources of its own."""
    with prometheus([istio.address], tmp_path_factory.mktemp("prometheus")) as address:
        yield address


@pytest.fixture
def board() -> Json:
    return tensorboard("pvc://logs", f"curves-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def files() -> Json:
    return viewer(name=f"files-{uuid.uuid4().hex[:8]}")


class Culler:
    """It looks as the operator does."""

    def __init__(self, address: str, idle: timedelta = LATE) -> None:
        self._source = istio_traffic(address, idle, late=LATE)
        self._traffic: Traffic | None = None

    def look(self) -> None:
        async def go() -> Traffic | None:
            async with httpx2.AsyncClient(verify=False) as http:
                return await ActivityProbe(http, lambda _: "", [self._source]).traffic()

        self._traffic = asyncio.run(go())

    def saw(self, resource: Json) -> Activity | None:
        """When it looked last."""

        async def go() -> Activity | None:
            async with httpx2.AsyncClient(verify=False) as http:
                return await ActivityProbe(http, lambda _: "").activity(resource, self._traffic)

        return asyncio.run(go())

    def used(self, resource: Json) -> bool:
        time.sleep(0.05)  # the scrape interval is longer
        self.look()
        return self.saw(resource) not in (None, Activity())

    def until_idle(self, resource: Json) -> None:
        wait_until("it is used", lambda: self.used(resource))
        wait_until("it is idle", lambda: not self.used(resource))


def test_a_growing_counter_means_use(istio: IstioMetrics, metrics: str, board: Json) -> None:
    culler = Culler(metrics)
    istio.count("me", name_of(board), 5)
    culler.until_idle(board)
    istio.count("me", name_of(board), 6)
    before = datetime.now(UTC)
    wait_until("it is used again", lambda: culler.used(board))
    found = culler.saw(board)
    assert found is not None
    assert found.last is not None
    assert before <= found.last <= datetime.now(UTC)
    culler.until_idle(board)


def test_without_metrics_of_istio_activity_is_unknown(tmp_path: Path, board: Json) -> None:
    with serve_metrics() as nobody, prometheus([nobody.address], tmp_path) as address:
        culler = Culler(address)
        culler.look()
        assert culler.saw(board) is None


def test_only_the_own_service_counts(
    istio: IstioMetrics, metrics: str, board: Json, files: Json
) -> None:
    """By its namespace and its name, which for a viewer is that of its Service."""
    culler = Culler(metrics)
    others = [("me", f"pvcviewer-{name_of(board)}"), ("another", name_of(board))]
    for namespace, name in (*others, ("me", name_of(files)), ("me", "other")):
        istio.count(namespace, name, 7)
    used = viewer(name=name_of(board))
    wait_until("another viewer is used", lambda: culler.used(used))
    assert culler.saw(board) == Activity()
    assert culler.saw(files) == Activity()
    istio.count("me", f"pvcviewer-{name_of(files)}", 1)
    wait_until("the viewer is used", lambda: culler.used(files))


@pytest.mark.parametrize(
    "own",
    [
        {"reporter": "destination", "source_workload": "unknown"},
        {"reporter": "source", "source_workload": "clew-operator"},
    ],
)
def test_probes_do_not_count_as_use(
    istio: IstioMetrics, metrics: str, own: dict[str, str], board: Json, files: Json
) -> None:
    culler = Culler(metrics)
    istio.count("me", name_of(board), 7, **own)
    istio.count("me", f"pvcviewer-{name_of(files)}", 7)
    wait_until("others are used", lambda: culler.used(files))
    assert culler.saw(board) == Activity()


def test_tcp_connections_count_by_their_bytes(
    istio: IstioMetrics, metrics: str, board: Json
) -> None:
    culler = Culler(metrics)
    istio.count("me", name_of(board), 5)
    istio.count("me", name_of(board), 100, COUNTERS[1])
    culler.until_idle(board)
    istio.count("me", name_of(board), 200, COUNTERS[1])
    wait_until("it is used", lambda: culler.used(board))


def test_a_reset_counter_is_not_use_until_it_grows(
    istio: IstioMetrics, metrics: str, board: Json, files: Json
) -> None:
    culler = Culler(metrics)
    istio.count("me", name_of(board), 100)
    istio.count("me", f"pvcviewer-{name_of(files)}", 1)
    culler.until_idle(board)
    istio.count("me", name_of(board), 0)
    istio.count("me", f"pvcviewer-{name_of(files)}", 2)
    wait_until("the viewer is used", lambda: culler.used(files))
    assert culler.saw(board) == Activity()
    istio.count("me", name_of(board), 3)
    wait_until("it is used", lambda: culler.used(board))


def test_missed_scrapes_are_not_use(
    istio: IstioMetrics, metrics: str, board: Json, files: Json
) -> None:
    culler = Culler(metrics)
    istio.count("me", name_of(board), 5)
    culler.until_idle(board)
    istio.samples = False

    def missing() -> bool:
        asked = {"query": COUNTERS[0]}
        answer = httpx2.get(f"{metrics}/api/v1/query", params=asked).json()
        return not answer["data"]["result"]

    wait_until("the counter is gone", missing)
    istio.count("me", f"pvcviewer-{name_of(files)}", 1)
    istio.samples = True
    wait_until("the viewer is used", lambda: culler.used(files))
    while culler.used(files):
        assert culler.saw(board) == Activity()


def test_all_traffic_since_the_last_query_counts(
    istio: IstioMetrics, metrics: str, board: Json
) -> None:
    """However long ago that was; and at first, within the time that it may be idle."""
    seldom, often, new = Culler(metrics), Culler(metrics), Culler(metrics, timedelta(hours=1))
    istio.count("me", name_of(board), 5)
    seldom.until_idle(board)
    wait_until("all others know it", lambda: not often.used(board))
    istio.count("me", name_of(board), 6)
    often.until_idle(board)
    assert seldom.used(board)
    assert not often.used(board)
    assert new.used(board)


def test_without_an_answer_activity_is_unknown(
    istio: IstioMetrics, tmp_path: Path, board: Json
) -> None:
    with prometheus([istio.address], tmp_path) as address:
        culler = Culler(address)
        assert not culler.used(board)
    culler.look()
    assert culler.saw(board) is None


def test_use_never_moves_backwards(istio: IstioMetrics, metrics: str, board: Json) -> None:
    """What was noted stays when the counter rests, begins anew, or is gone."""
    culler = Culler(metrics)
    culling = Culling(idle=timedelta(days=1))
    istio.count("me", name_of(board), 5)
    wait_until("it is used", lambda: culler.used(board))
    first = decide(board, pod(name_of(board)), culler.saw(board), datetime.now(UTC), culling)
    noted = first.annotations
    assert OTHER_LAST_ACTIVITY in noted
    resource = {**board, "metadata": {**board["metadata"], "annotations": noted}}
    istio.count("me", name_of(board), 0)
    wait_until("it is idle", lambda: not culler.used(resource))
    for found in (culler.saw(resource), None):
        verdict = decide(resource, pod(name_of(board)), found, datetime.now(UTC), culling)
        assert not verdict.cull
        assert verdict.annotations == {}
