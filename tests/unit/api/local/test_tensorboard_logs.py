"""Where on a cluster the TensorBoard logs of a Pod are."""

import pytest
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder

from clew.api.local.tensorboard_logs import find_log_place
from clew.errors import NotFound
from clew.prov.graph import Graph


def test_logs_on_a_volume_and_in_a_bucket_are_found(graph: Graph) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    train = cluster.pod("team", "train", claims=["data"])
    for part in ("train", "validation"):
        train.write(f"data/logs/run 1/{part}/events.out.tfevents.1.{part}")
    train.write("data/model.bin").end()
    bucket = cluster.pod("team", "bucket")
    bucket.write("s3://lab/runs/7/events.out.tfevents.2").end()
    silent = cluster.pod("team", "silent", claims=["data"]).write("data/tfevents/none")
    silent.end()
    cluster.fold(graph)
    assert find_log_place(graph, train.uid, "team") == "pvc://data/logs/run 1"
    assert find_log_place(graph, bucket.uid, "team") == "s3://lab/runs/7"
    for name in ("team/bucket", "pod/team/bucket"):
        assert find_log_place(graph, name, "team") == "s3://lab/runs/7"
    with pytest.raises(NotFound, match="no execution team/none"):
        find_log_place(graph, "team/none", "team")
    for pod, namespace in ((silent, "team"), (train, "other")):
        with pytest.raises(NotFound, match="wrote no TensorBoard logs to a volume of"):
            find_log_place(graph, pod.uid, namespace)
