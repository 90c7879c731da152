"""Which Pod diverged first, and what may be the cause."""

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import AncestorPod, Peer, Touch
from clew.prov.cluster.facets import PodFacet
from clew.replay.pods.pod_divergence import (
    StageResult,
    count_compared,
    find_divergence,
    list_differences,
)
from clew.replay.pods.stages import Expected, Place, Stage

PLACE = Place(Locator("pvc://ml/data@v/a"), "v-1", b"a")


def result(name: str, now: str | None = "blake3:0", *, touched: bool = False) -> StageResult:
    touches = (Touch(how="exec", by="alice", at=1),) if touched else ()
    pod = AncestorPod(
        uid=Uid(name), namespace="ml", name=name, started=1, touched=touches,
        peers=(Peer(locator=Locator("service://ml/scores")),) if touched else (),
    )  # fmt: skip
    stage = Stage(
        pod=pod,
        facet=PodFacet(namespace="ml", name=name),
        restore=(),
        directories=(),
        expect=(Expected(PLACE, Digest("blake3:0")),),
        claims={},
        config_maps={},
        secrets=frozenset(),
    )
    return StageResult(stage, {PLACE.locator: now})


def test_nothing_diverged() -> None:
    results = [result("a"), result("b")]
    assert find_divergence(results) is None
    assert list_differences(results) == []
    assert count_compared(results) == 2


def test_the_first_one_and_its_candidates() -> None:
    found = find_divergence([result("a"), result("b", "blake3:1", touched=True), result("c", None)])
    assert found is not None and found.pod == "b"
    assert [cause.cause for cause in found.causes] == ["touched by hand", "network"]
    kinds = [one.kind for one in list_differences([result("b", "blake3:1"), result("c", None)])]
    assert kinds == ["content", "missing"]


def test_without_another_cause_time_or_randomness() -> None:
    found = find_divergence([result("a", "blake3:1")])
    assert found is not None
    assert {cause.cause for cause in found.causes} == {"clock", "random"}


def test_other_hardware() -> None:
    then = {"node": "one", "cpu.model": "A", "cuda": "12.1", "kernel.release": "6"}
    now = {"node": "two", "cpu.model": "B", "cuda": "12.4", "kernel.release": "6"}
    differs = result("a", "blake3:1")
    found = find_divergence(
        [StageResult(differs.stage, differs.digests, hardware=now, recorded_hardware=then)]
    )
    assert found is not None
    assert [(cause.cause, cause.detail) for cause in found.causes] == [
        ("cpu", "cpu.model was A, and is B"),
        ("hardware", "cuda was 12.1, and is 12.4"),
    ]
