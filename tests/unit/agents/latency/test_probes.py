"""Round-trip times over a real network path."""

import os
from collections.abc import Iterator

import pytest
from tests.network_path import PORT, NetworkPath

from clew.agents.latency import probes
from clew.agents.latency.probes import ProbeFailed, resolve
from clew.placement.measurement.locations import ProbeAddress

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes a network namespace")

NEAR, FAR = "10.99.0.2", "10.99.0.3"


@pytest.fixture(scope="module")
def path() -> Iterator[NetworkPath]:
    with NetworkPath() as made:
        yield made


@pytest.fixture(autouse=True)
def inside(path: NetworkPath) -> Iterator[None]:
    path.set_distance(NEAR, 5)
    path.set_distance(FAR, 40)
    with path.entered():
        yield


@pytest.mark.parametrize("port", [PORT, None])
def test_a_probe_takes_the_time_of_the_path(port: int | None) -> None:
    near = min(resolve(ProbeAddress(NEAR, port))() for _ in range(3))
    far = min(resolve(ProbeAddress(FAR, port))() for _ in range(3))
    assert 5 <= near < 40 <= far < 2000


def test_a_refused_connection_is_no_latency() -> None:
    with pytest.raises(ProbeFailed, match="refused"):
        resolve(ProbeAddress(NEAR, PORT + 1))()


@pytest.mark.parametrize("port", [PORT, None])
def test_lost_packets_time_out(
    path: NetworkPath, port: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "TIMEOUT_SECONDS", 0.1)
    path.set_distance(FAR, None)
    with pytest.raises(ProbeFailed, match="timeout"):
        resolve(ProbeAddress(FAR, port))()


def test_without_a_route_it_is_unreachable() -> None:
    with pytest.raises(ProbeFailed, match="unreachable"):
        resolve(ProbeAddress("192.0.2.1", 80))()


def test_a_name_that_is_none_is_not_resolved() -> None:
    with pytest.raises(ProbeFailed, match="resolve"):
        resolve(ProbeAddress("location.invalid", 80))()
