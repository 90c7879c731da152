"""A plan gets what it needs: the same as if all that is known of all Pods were loaded."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder, PodBuilder

from clew.db import Connection
from clew.db.sqlite import SQLite
from clew.documents.ids import Uid
from clew.errors import NotFound
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.graph import Graph
from clew.prov.queries.cluster.ancestry.ancestry import find_ancestry
from clew.prov.queries.lineage.lineage_sql import LineageQueries
from clew.prov.queries.lineage.walk import Walk
from clew.prov.queries.targets import Target, resolve_target
from clew.replay.pods.pod_plan import PodPlan, plan_pods

PROJECTS = count()
_UID, _KIND = 3, 8
"""Columns of `LineageQueries.activities`."""


class Access(NamedTuple):
    way: str
    """`read`, `write`, or `rename` to another place."""
    place: str
    content: int | None
    """None: no witness hashed it."""
    stored: bool
    later: bool
    """After all Pods have started."""


class RanPod(NamedTuple):
    mount: str
    """`unseen`: the audit witness did not see the Pod's volumes."""
    watched: bool
    accesses: list[Access]
    ends: bool
    """Before the next Pod starts."""


ACCESSES = st.builds(
    Access,
    st.sampled_from(["read", "read", "write", "write", "rename"]),
    st.sampled_from(["data/a", "data/b", "more/a", "s3://lake/a"]),
    st.sampled_from([0, 0, 0, 1, None]),
    st.sampled_from([False, False, True]),
    st.booleans(),
)
RENAMED = {"data/a": "data/b", "data/b": "data/a", "more/a": "data/a"}
PODS = st.builds(
    RanPod,
    st.sampled_from(["writable", "read only", "unseen", "unseen"]),
    st.sampled_from([True, True, False]),
    st.lists(ACCESSES, min_size=1, max_size=4),
    st.booleans(),
)


def build(drawn: list[RanPod]) -> ClusterBuilder:
    cluster = ClusterBuilder()
    for claim in ("data", "more"):
        cluster.claim("team", claim, f"pv-{claim}")
    pods = []
    made: set[str | None] = set()
    for number, one in enumerate(drawn):
        claims = [] if one.mount == "unseen" else ["data", "more"]
        kind = "read_only" if one.mount == "read only" else "claims"
        pod = cluster.pod("team", f"p{number}", watched=one.watched, **{kind: claims})
        access(pod, one, made, later=False)
        if one.ends:
            pod.end()
        pods.append(pod)
    for pod, one in zip(pods, drawn, strict=True):
        if not one.ends:
            access(pod, one, made, later=True)
            pod.end()
    return cluster


def access(pod: PodBuilder, ran: RanPod, made: set[str | None], *, later: bool) -> None:
    """What nobody made is stored when it is read: else there is no plan."""
    for way, place, content, stored, when in ran.accesses:
        if (when and not ran.ends) == later:
            text = None if content is None else f"{place} {content}"
            if way == "write":
                pod.write(place, text, stored=stored)
                made.add(text)
            elif way == "rename" and text in made and not place.startswith("s3://"):
                pod.rename(place, RENAMED[place], text, stored=stored)
            elif text is not None or None in made:
                pod.read(place, text, stored=stored or text not in made)


def describe(plan: PodPlan) -> tuple[object, ...]:
    run = [(choice.pod.name, choice.pod.outputs, choice.why) for choice in plan.run]
    skipped = [(choice.pod.name, {*choice.pod.volumes}, choice.why) for choice in plan.skipped]
    return run, skipped, plan.pods_by_file, plan.pods_by_volume


def outcome(ancestry: Ancestry) -> object:
    try:
        return describe(plan_pods(ancestry))
    except NotFound as error:
        return error.code  # which of several missing files it names depends on what is loaded


def list_traced(graph: Graph, target: Target) -> set[Uid]:
    """The Pods of the lineage of `clew trace`, if nothing is watched."""
    walk = Walk(graph, up=True, everything=True, limit=1000, ignore_watched=True)
    walk.from_target(target, None)
    steps = LineageQueries(graph.connection)
    pods = steps.executions(walk.reached().activities).values()
    return {Uid(row[_UID]) for row in steps.activities(pods).values() if row[_KIND] == "pod"}


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Connection]:
    """Each history is a project of its own in it."""
    with SQLite(tmp_path / "graph.db") as opened:
        yield opened


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(
    drawn=st.lists(PODS, min_size=2, max_size=6),
    text=st.sampled_from(["pod/team/p{last}", "pvc://team/data/a", "s3://lake/a"]),
    cut=st.sampled_from([None, None, 0.5, 0.9]),
)
def test_the_plan_is_that_of_the_whole_ancestry(
    sqlite: Connection, drawn: list[RanPod], text: str, cut: float | None
) -> None:
    cluster = build(drawn)
    graph = Graph(sqlite, f"{next(PROJECTS):032x}")
    cluster.fold(graph)
    start = cluster.audit[0].at
    as_of = None if cut is None else start + int(cut * (cluster.now - start))
    try:
        target = resolve_target(
            graph, text.format(last=len(drawn) - 1), machine="m", locate=lambda path: path,
            digest_of=lambda _: None, as_of=as_of,
        )  # fmt: skip
    except NotFound:
        target = None
    assume(target is not None and target.kind != "file")
    assert target is not None
    everything = find_ancestry(graph, target, as_of=as_of, everything=True)
    if as_of is None:
        assert list_traced(graph, target) <= {pod.uid for pod in everything.pods}
    assert outcome(find_ancestry(graph, target, as_of=as_of)) == outcome(everything)
