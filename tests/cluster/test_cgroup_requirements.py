"""What a machine lacks is said before a cluster is begun."""

from pathlib import Path

import pytest
from tools.cluster.commands import ClusterError
from tools.cluster.nodes import check_cgroups


def test_one_hierarchy_for_all_controllers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    (tmp_path / "system.slice").mkdir()
    with pytest.raises(ClusterError, match=r"version 1.*KUBECONFIG"):
        check_cgroups(tmp_path)


def test_a_hierarchy_for_each_is_taken(tmp_path: Path) -> None:
    """Also where a further one has no controllers."""
    for name in ("cpu", "memory", "pids"):
        (tmp_path / name).mkdir()
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified" / "cgroup.controllers").touch()
    check_cgroups(tmp_path)
