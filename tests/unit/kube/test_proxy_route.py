"""What the operator tells of a server on its Service is what the proxy understands."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kube.objects import Key, find_reason
from clew.kube.proxy_route import (
    ROUTE_ANNOTATION,
    ProxyRoute,
    parse_duration,
    read_route,
    route_annotation,
)
from clew.kube.service_addresses import ServerAddress, read_address

TEXT = st.text(max_size=20)
WAYS = st.builds(
    ProxyRoute,
    rewrite=st.none() | st.text(min_size=1, max_size=20),
    headers=st.dictionaries(TEXT, TEXT, max_size=3),
    timeout=st.none() | st.floats(0.001, 1e6),
    base=st.none() | st.text(min_size=1, max_size=20),
    access=st.booleans(),
)


def service(route: ProxyRoute | None = None, **owner: Any) -> dict[str, Any]:
    reference = {"kind": "Notebook", "name": "first", "uid": "u", "controller": True, **owner}
    return {
        "metadata": {
            "annotations": route_annotation(route or ProxyRoute()),
            "ownerReferences": [reference],
        },
        "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]},
    }


@given(WAYS)
def test_recorded_routes_are_returned(route: ProxyRoute) -> None:
    assert read_route(service(route)) == route


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", '{"headers": 1, "timeout": "x", "base": 1, "access": 1}', '"/"']
)
def test_damaged_routes_are_ignored(text: str) -> None:
    assert read_route({"metadata": {"annotations": {ROUTE_ANNOTATION: text}}}) == ProxyRoute()


@pytest.mark.parametrize(
    ("text", "found"),
    [("30s", 30.0), ("1m30s", 90.0), ("1.5h", 5400.0), ("200ms", 0.2), ("", None), ("30", None)],
)
def test_times_are_istios(text: str, found: float | None) -> None:
    assert parse_duration(text) == pytest.approx(found)


def test_only_what_was_made_for_the_resource_is_found() -> None:
    key = Key("Notebook", "me", "first")
    assert read_address(key, service()) == ServerAddress("10.0.0.7", 80, ProxyRoute(), "u")
    assert read_address(Key("Tensorboard", "me", "first"), service()) is None
    assert read_address(key, service(name="other")) is None
    assert read_address(key, service(controller=False)) is None
    assert read_address(key, None) is None
    headless = service()
    headless["spec"]["clusterIP"] = "None"
    assert read_address(key, headless) is None
    leaving = service()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert read_address(key, leaving) is None


def resource(**condition: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "first", "namespace": "me"},
        "status": {"conditions": [{"type": "Ready", **condition}]},
    }


def test_the_reason_is_that_of_its_condition() -> None:
    why = "The image cannot be pulled (example.org/none): not found"
    assert find_reason(resource(status="False", reason="ImageNotPulled", message=why)) == why
    assert find_reason(resource(status="False", reason="Starting")) == "Starting"
    assert find_reason(resource(status="True", reason="Running")) is None
    assert find_reason({"metadata": {}}) == "The operator has not looked at it yet."
    leaving = resource(status="True")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert find_reason(leaving) == "It is being deleted."
