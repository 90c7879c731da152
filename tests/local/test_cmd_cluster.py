"""`clew cluster`: what existed at a time, from this project and from a server."""

from datetime import UTC, datetime
from pathlib import Path

from tests.driver import Project
from tests.local.server import run_server
from tests.unit.prov.cluster.cluster_builder import SECOND, ClusterBuilder, image_of


def test_what_existed_at_a_time(tmp_path: Path) -> None:
    cluster = ClusterBuilder()
    pod = cluster.pod("team", "train", image="train")
    at = datetime.fromtimestamp(cluster.tick() // SECOND, UTC).isoformat()
    pod.end()
    cluster.pod("other", "late")
    project = Project(tmp_path)
    with project.opened() as opened:
        cluster.fold(opened.graph)
    now = project("cluster").stdout
    assert "Pod other/late" in now
    assert "train" not in now
    shown = project("cluster", "--as-of", at).stdout
    assert shown == f"Pod team/train  e1  on one  main {image_of('train')}  by alice\n"
    assert project("cluster", "--as-of", at, "--namespace", "other").stdout == ""
    (here,) = project.json("cluster", "--as-of", at)["objects"]
    assert (here["kind"], here["namespace"], here["name"]) == ("Pod", "team", "train")
    with run_server(project) as server:
        there = project.json("cluster", "--as-of", at, env=server.variables)
    assert there["objects"] == [here]
