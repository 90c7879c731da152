"""`clew reproduce --dry-run`: which Pods would run, by what the witnesses of a cluster observed."""

from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project
from tests.local.server import run_server
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder

from clew.api.local.pod_record import find_pod_facets
from clew.errors import NotAllowed, NotFound, UsageError

TARGET = "pvc://team/data/metrics.json"


def observe(folder: Path, *stored: str, watched: bool = True) -> Project:
    """The workload of `examples/cluster`; only the contents `stored` are stored."""
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    volume: dict[str, Any] = {"claims": ["data"], "watched": watched}

    def run(name: str, reads: list[str], writes: list[str]) -> None:
        pod = cluster.pod("team", name, image=name, **volume)
        for path in reads:
            pod.read(path)
        for path in writes:
            pod.write(path, path, stored=path in stored)
        pod.end()

    run("ingest", [], ["data/north.csv", "data/south.csv", "s3://pumps/labels.csv"])
    run("prepare-north", ["data/north.csv"], ["data/prepared/north.csv"])
    run("prepare-south", ["data/south.csv"], ["data/prepared/south.csv"])
    run("train", ["data/prepared/north.csv", "s3://pumps/labels.csv"], ["data/model.json"])
    run("evaluate", ["data/model.json"], ["data/metrics.json"])
    project = Project(folder)
    with project.opened() as opened:
        cluster.fold(opened.graph, files=watched)
    return project


def test_the_ids_of_a_lineage_name_what_to_reproduce(tmp_path: Path) -> None:
    """A Pod, its container and a version, as `clew trace` shows them."""
    observed = observe(tmp_path)
    with observed.opened() as project:
        nodes = project.lineage("pod/team/evaluate", depth=1).nodes
        ids = [node.id for node in nodes if node.kind in ("pod", "container")]
        ids += [node.id for node in nodes if node.path == TARGET]
        plans = [project.pods.reproduce(id_, dry_run=True) for id_ in ids]
        with pytest.raises(UsageError, match="is a pod of a cluster"):
            project.repeat(ids[0])
    assert len(ids) >= 2
    assert {tuple(one.pod for one in plan.plan) for plan in plans} == {
        ("ingest", "prepare-north", "train", "evaluate")
    }
    observed.sh("echo made here > notes.txt")
    with observed.opened() as project, pytest.raises(NotFound, match="is not a file on a volume"):
        project.pods.reproduce(f"{project.execution('latest').id}:notes.txt", dry_run=True)


@pytest.mark.parametrize(
    ("stored", "runs"),
    [
        ([], ["ingest", "prepare-north", "train", "evaluate"]),
        (["data/north.csv", "s3://pumps/labels.csv"], ["prepare-north", "train", "evaluate"]),
        (["data/model.json"], ["evaluate"]),
        (["data/metrics.json"], []),
    ],
)
def test_the_fewest_pods_by_what_is_stored(
    tmp_path: Path, stored: list[str], runs: list[str]
) -> None:
    with observe(tmp_path, *stored).opened() as project:
        plan = project.pods.reproduce(TARGET, dry_run=True)
    assert [one.pod for one in plan.plan] == runs
    assert (plan.pods_by_file, plan.pods_by_volume) == (len(runs), 5)
    assert {one.pod for one in plan.skipped} | set(runs) >= {"prepare-south", *runs}


def test_where_no_witness_saw_files_every_pod_runs(tmp_path: Path) -> None:
    with observe(tmp_path, watched=False).opened() as project:
        plan = project.pods.reproduce(TARGET, dry_run=True)
    assert plan.pods_by_file == plan.pods_by_volume == 5


def test_it_says_why_each_pod_runs_or_not(tmp_path: Path) -> None:
    project = observe(tmp_path, "data/model.json")
    printed = project("reproduce", TARGET, "--dry-run").stdout.splitlines()
    place = "pvc://team/data@pv-1"
    assert (
        f"run   team/evaluate: the target needs {place}/metrics.json, which is not stored"
        in printed
    )
    assert f"skip  team/train: {place}/model.json: taken from the store" in printed
    assert "Pods to run: 1 by file, 5 by volume" in printed
    assert [*project.json("reproduce", TARGET, "--dry-run")["plan"][0]] == [
        "pod", "namespace", "uid", "image", "why",
    ]  # fmt: skip


def test_pods_of_one_name_are_told_apart(tmp_path: Path) -> None:
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    for turn in range(2):
        pod = cluster.pod("team", "train", claims=["data"], incarnation=turn)
        pod.write(f"data/{turn}", str(turn)).end()
    project = Project(tmp_path)
    with project.opened() as opened:
        cluster.fold(opened.graph)
        plan = opened.pods.reproduce("pvc://team/data", dry_run=True)
    printed = project("reproduce", "pvc://team/data", "--dry-run").stdout
    assert len(plan.plan) == 2
    for one in plan.plan:
        assert f"run   team/train ({one.uid[:8]}): " in printed


def test_what_it_cannot_reproduce(tmp_path: Path) -> None:
    project = observe(tmp_path)
    code, message, _ = project.error("reproduce", "pvc://team/none/x", "--dry-run", status=5)
    assert code == "not-found" and "pvc://team/none/x" in message
    code, _, _ = project.error("reproduce", "./file", "--dry-run", status=5)
    assert code == "not-found"
    assert project.error("reproduce", TARGET, "--here", "--namespace", "x", status=2)[0] == "usage"


def test_a_server_gives_the_same_plan(tmp_path: Path) -> None:
    project = observe(tmp_path, "data/model.json")
    with run_server(project) as server:
        remote = Project(tmp_path / "asking", init=False, **server.variables)
        words = ("reproduce", TARGET, "--dry-run")
        assert remote.json(*words) == project.json(*words)
        assert remote.error("reproduce", "pvc://team/none/x", status=5)[0] == "not-found"


def test_a_pod_in_a_namespace_that_the_caller_may_not_read(tmp_path: Path) -> None:
    cluster = ClusterBuilder()
    cluster.pod("a", "publish").write("s3://lake/public", "data", stored=False).end()
    report = cluster.pod("b", "report").read("s3://lake/public").write("s3://lake/report").end()
    with Project(tmp_path).opened() as project:
        cluster.fold(project.graph)
        assert len(project.pods.reproduce("s3://lake/report", dry_run=True).plan) == 2
        project.graph.restrict(lambda namespace: namespace == "b")
        with pytest.raises(NotAllowed):
            project.pods.reproduce("s3://lake/report", dry_run=True)
        project.graph.restrict(lambda namespace: namespace == "a")
        with pytest.raises(NotAllowed):
            find_pod_facets(project.graph, [report.uid])
