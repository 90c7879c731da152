"""A recorded Pod as containers of this machine: no recorded name leads out of its directory."""

from typing import Any

import pytest

from clew.replay.pods.container_plan import plan_containers


def plan(volume: str, sub_path: str) -> list[str]:
    mount = {"name": volume, "mountPath": "/data", "subPath": sub_path}
    container: dict[str, Any] = {"name": "c", "image": "i", "volumeMounts": [mount]}
    spec = {"containers": [container], "volumes": [{"name": volume, "emptyDir": {}}]}
    return plan_containers({"metadata": {"name": "p"}, "spec": spec})[1]


@pytest.mark.parametrize("volume", ["/etc", "../../etc", "..", "a/b", "", "a\nb", "A"])
def test_a_volume_is_called_as_kubernetes_allows(volume: str) -> None:
    assert plan(volume, "") == ["a volume has a name that Kubernetes would not take"]


@pytest.mark.parametrize("sub_path", ["/etc", "/", "..", "a/../b", ".", "a//b", "a\0b"])
def test_a_part_of_a_volume_is_inside_of_it(sub_path: str) -> None:
    assert plan("data", sub_path) == ["a path on a volume leads out of it"]


@pytest.mark.parametrize("sub_path", ["", "a", "a/b", "a/", "..a/b.."])
def test_other_parts_are_mounted(sub_path: str) -> None:
    assert plan("data-1", sub_path) == []
