"""How much of a quota is used."""

from typing import Any

from clew.workloads.quotas import read_quota


def quota(hard: dict[str, str], used: dict[str, str]) -> dict[str, Any]:
    return {"status": {"hard": hard, "used": used}}


def test_the_fullest_comes_first_and_the_tightest_counts() -> None:
    team = quota({"requests.cpu": "4", "pods": "10"}, {"requests.cpu": "500m", "pods": "9"})
    space = quota({"requests.cpu": "1"}, {"requests.cpu": "0.5"})
    found = read_quota("research", [team, space])
    assert found is not None
    uses = [(use.resource, use.used, use.limit, use.share) for use in found.uses]
    assert uses == [("pods", "9", "10", 0.9), ("requests.cpu", "0.5", "1", 0.5)]


def test_a_quota_of_nothing_is_used_up() -> None:
    found = read_quota("research", [quota({"pods": "0"}, {})])
    assert found is not None
    assert [(use.used, use.share) for use in found.uses] == [("0", 1.0)]


def test_without_a_quota_there_is_none() -> None:
    assert read_quota("research", []) is None
    assert read_quota("research", [{"spec": {}}, quota({"pods": "many"}, {})]) is None
