"""Observations of several witnesses: the same graph in any order; nothing out of their scope."""

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.db import Connection
from clew.db.sqlite import SQLite
from clew.documents.ids import Digest, Uid
from clew.errors import ClewError, Rejected
from clew.prov import tables
from clew.prov.cluster.activity_uids import container_uid, object_uid
from clew.prov.cluster.locators import config_map_locator, image_locator, volume_locator
from clew.prov.cluster.observation_numbers import MAX_NUMBER, number_event, number_events
from clew.prov.events import Alias, AnyEvent, Content, Ended, Generated, Started, Used, Version
from clew.prov.graph import Graph

PROJECT = Uid("p" * 32)
POD = object_uid("0a1b2c3d-0000-4000-8000-000000000001") or Uid("")
CONTAINER = container_uid(POD, f"containerd://{'c' * 64}") or Uid("")
FILE = volume_locator("team", "data", "pvc-1", b"/model.pkl")
IMAGE = image_locator(f"registry/app@sha256:{'1' * 64}")
assert IMAGE is not None


def observed() -> list[AnyEvent]:
    """Two witnesses, of which one knows less about the Pod."""
    made = Version(FILE, CONTAINER, 1)
    digest = Digest(f"blake3:{'2' * 64}")
    facts = {"size": 3, "mode": 0o100644, "mtime": 5}
    own = {"execution": POD, "n": 0}
    return list(
        number_events(
            [
                Started(**own, at=1, activity=POD, kind="pod", name="team/train"),
                Started(**own, at=1, activity=POD, kind="pod", name="team/train", node="one"),
                Started(**own, at=2, activity=CONTAINER, kind="container", parent=POD),
                Started(**own, at=3, activity=CONTAINER, kind="container", parent=POD, name="main"),
                Used(**own, at=3, activity=CONTAINER, version=Version(IMAGE, POD, 1), how="exec"),
                Generated(**own, at=4, activity=CONTAINER, version=made),
                Content(**own, at=4, version=made, digest=digest, stored=True, **facts),
                Content(**own, at=9, version=made, digest=digest, stored=False, **facts),
                Ended(**own, at=9, activity=POD, status=0),
                Ended(**own, at=11, activity=POD),
            ]
        )
    )


def rows_of(graph: Graph) -> dict[str, list[tuple[object, ...]]]:
    return {
        table: sorted(graph.connection.rows(f"SELECT {', '.join(columns)} FROM {table}"), key=repr)
        for table, columns in tables.COLUMNS.items()
    }


def graph_of(parts: Iterable[list[AnyEvent]], tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = Graph(SQLite(tmp_path_factory.mktemp("graph") / "graph.db"), PROJECT)
    for part in parts:
        graph.import_observations([observed()[0], *part])
    return graph


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15
)
@given(order=st.permutations(observed() + observed()[3:7]), parts=st.integers(1, 5))
def test_any_order_and_repetition_gives_the_same_graph(
    order: list[AnyEvent], parts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = graph_of([observed()], tmp_path_factory)
    other = graph_of([order[i::parts] for i in range(parts)], tmp_path_factory)
    assert rows_of(other) == rows_of(whole)
    name, node = whole.connection.rows("SELECT name, node FROM started WHERE kind = 'pod'")[0]
    assert (name, node) == ("team/train", "one")
    assert whole.connection.rows("SELECT stored FROM content") == [(1,)]
    whole.connection.close()
    other.connection.close()


@given(number=st.integers(0, 2**53), at=st.integers(0, 2**62))
def test_a_number_depends_on_what_is_said_alone(number: int, at: int) -> None:
    events = [
        Started(execution=POD, n=number, at=at, activity=POD, kind="pod"),
        Ended(execution=POD, n=number, at=at, activity=POD),
        Used(execution=POD, n=number, at=at, activity=POD, version=Version(FILE, POD, 1)),
    ]
    for event in events:
        numbered = number_event(event)
        assert numbered == number_event(numbered)
        assert 0 <= numbered.n < MAX_NUMBER


@pytest.mark.parametrize(
    "event",
    [
        Started(execution="a" * 32, n=1, at=1, activity="a" * 32, kind="execution"),
        Started(execution="a" * 32, n=1, at=1, activity="a" * 32, kind="run"),
        Started(execution=POD, n=1, at=1, activity=POD, kind="pod", parent="a" * 32),
        Started(execution=POD, n=1, at=1, activity="b" * 32, kind="container", parent=POD),
        Started(execution=POD, n=1, at=1, activity=f"{POD}/x", kind="process", parent=POD),
        Used(execution=POD, n=1, at=1, activity="b" * 32, version=Version(FILE, POD, 1)),
        Used(execution=POD, n=1, at=1, activity=POD, version=Version(FILE, Uid("b" * 32), 1)),
        Alias(execution=POD, n=1, at=1, a="file://laptop/data", b="pod://team/train"),
        Alias(execution=POD, n=1, at=1, a="pod://team/train", b="file://laptop/data"),
        Content(
            execution="a" * 32, n=1, at=1, version=Version(FILE, POD, 1), digest="", size=0,
            mode=0, mtime=0,
        ),
    ],
)  # fmt: skip
def test_an_agent_describes_nothing_but_the_cluster(graph: Graph, event: AnyEvent) -> None:
    graph.fold(ExecutionBuilder("b").end().events)
    before = rows_of(graph)
    with pytest.raises(Rejected):
        graph.import_observations([observed()[0], event])
    assert rows_of(graph) == before


@pytest.mark.parametrize(("kind", "name"), [("pod", "mine/x"), ("pod", None), ("node", "n")])
def test_no_agent_moves_a_pod_to_another_namespace(
    graph: Graph, kind: str, name: str | None
) -> None:
    """Who may read the namespace may read the Pod."""
    uid = Uid("d" * 32)
    begun = Started(execution=uid, n=9, at=1, activity=uid, kind="pod", name="team/x")
    moved = structs.replace(begun, n=1, kind=kind, name=name)
    graph.import_observations([begun])
    for batch in ([moved], [begun, moved]):
        with pytest.raises(Rejected, match="another namespace"):
            graph.import_observations(batch)
    graph.import_observations([structs.replace(begun, n=2)])


@pytest.mark.parametrize("kind", ["claim", "controller", "request"])
@pytest.mark.parametrize("namespace", ["mine", ""])
def test_no_agent_moves_an_object_to_another_namespace_by_its_facet(
    graph: Graph, kind: str, namespace: str
) -> None:
    uid = Uid("d" * 32)
    name = None if kind == "request" else "team/x"
    facet = {"namespace": "team", "name": "x", "verb": "patch", "resource": "configmaps"}
    begun = Started(
        execution=uid, n=9, at=1, activity=uid, kind=kind, name=name, facets={"kubernetes": facet}
    )
    moved = structs.replace(begun, n=1, facets={"kubernetes": {**facet, "namespace": namespace}})
    graph.import_observations([begun])
    for batch in ([moved], [begun, moved]):
        with pytest.raises(Rejected, match="another namespace"):
            graph.import_observations(batch)
    facet["labels"] = {"app": "x"}
    graph.import_observations([structs.replace(begun, n=2)])


def test_a_record_of_a_command_cannot_describe_a_pod(graph: Graph) -> None:
    pod = observed()[1]
    with pytest.raises(Rejected, match="only its agents describe"):
        graph.import_events([pod])
    graph.import_observations([pod])
    lie = Ended(execution=POD, n=5, at=5, activity=POD, status=1)
    with pytest.raises(ClewError):
        graph.import_events([lie])


def test_only_an_image_may_have_the_digest_of_its_manifest(graph: Graph) -> None:
    assert IMAGE is not None
    for locator, digest in ((IMAGE, f"sha256:{'1' * 64}"), (FILE, f"sha256:{'1' * 64}")):
        event = Content(
            execution=POD, n=1, at=1, version=Version(locator, POD, 1), digest=Digest(digest),
            size=0, mode=0, mtime=0, stored=False,
        )  # fmt: skip
        if locator == IMAGE:
            graph.import_observations([observed()[0], event])
        else:
            with pytest.raises(Rejected, match="digest"):
                graph.import_observations([observed()[0], event])


def test_names_that_no_object_can_have_are_refused() -> None:
    assert object_uid("../etc") is None
    assert container_uid(POD, "containerd://../x") is None
    assert image_locator("docker.io/library/app:latest") is None
    assert config_map_locator("team", "settings") == "configmap://team/settings"


@pytest.fixture
def graph(connection: Connection) -> Graph:
    return Graph(connection, PROJECT)
