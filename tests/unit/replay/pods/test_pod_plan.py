"""The fewest Pods to run again: against looking at every set of them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.documents.ids import Digest, Locator, Uid
from clew.errors import NotFound
from clew.prov.cluster.ancestry_types import (
    AncestorPod,
    Ancestry,
    FoundVersion,
    MadeVersion,
    VolumeWriters,
)
from clew.replay.pods.pod_plan import PodPlan, plan_pods

VOLUME = Locator("pvc://ml/data@pv1")


def found(name: str, *makers: str, stored: bool = False) -> FoundVersion:
    """A version whose bytes are named by `name`."""
    return FoundVersion(
        locator=Locator(f"{VOLUME}/{name}"),
        makers=tuple(map(Uid, makers)),
        digest=Digest(f"blake3:{name}"),
        stored=stored,
    )


def ran(uid: str, at: int, *inputs: FoundVersion, makes: str = "") -> AncestorPod:
    return AncestorPod(
        uid=Uid(uid),
        namespace="ml",
        name=uid,
        started=at,
        ended=at + 1,
        inputs=inputs,
        outputs=tuple(
            MadeVersion(locator=Locator(f"{VOLUME}/{name}"), digest=Digest(f"blake3:{name}"))
            for name in makes.split()
        ),
        volumes=(VOLUME,),
    )


def ancestry(wanted: FoundVersion, *pods: AncestorPod) -> Ancestry:
    writers = VolumeWriters(
        locator=VOLUME, writers=tuple((pod.uid, pod.started) for pod in pods if pod.outputs)
    )
    return Ancestry(
        target="t", wanted=(wanted,), pods=pods, volumes=(writers,), wanted_volumes=(VOLUME,)
    )


def workload(*, stored: str = "") -> Ancestry:
    """Ingest, two preprocessors that share the volume but no file, a trainer, an evaluator."""
    kept = stored.split()

    def read(name: str, maker: str) -> FoundVersion:
        return found(name, maker, stored=name in kept)

    return ancestry(
        read("metric", "evaluate"),
        ran("ingest", 1, makes="raw-a raw-b object"),
        ran("prepare-a", 2, read("raw-a", "ingest"), makes="a"),
        ran("prepare-b", 3, read("raw-b", "ingest"), makes="b"),
        ran("train", 4, read("a", "prepare-a"), read("object", "ingest"), makes="model"),
        ran("evaluate", 5, read("model", "train"), makes="metric"),
    )


def names(plan: PodPlan) -> list[str]:
    return [choice.pod.name for choice in plan.run]


def test_nothing_stored_leaves_out_only_the_pod_that_shares_no_file() -> None:
    plan = plan_pods(workload())
    assert names(plan) == ["ingest", "prepare-a", "train", "evaluate"]
    assert (plan.pods_by_file, plan.pods_by_volume) == (4, 5)
    assert [choice.pod.name for choice in plan.skipped] == ["prepare-b"]
    assert plan.skipped[0].why.startswith("it shares a volume")
    assert plan.run[1].why == f"train needs {VOLUME}/a, which is not stored"
    assert plan.run[3].why == f"the target needs {VOLUME}/metric, which is not stored"


def test_stored_outputs_are_taken_from_the_store() -> None:
    plan = plan_pods(workload(stored="raw-a raw-b object"))
    assert names(plan) == ["prepare-a", "train", "evaluate"]
    reasons = {choice.pod.name: choice.why for choice in plan.skipped}
    assert reasons["ingest"] == f"{VOLUME}/object and 1 more: taken from the store"


def test_a_stored_model_leaves_one() -> None:
    plan = plan_pods(workload(stored="model"))
    assert names(plan) == ["evaluate"]
    reasons = {choice.pod.name: choice.why for choice in plan.skipped}
    assert reasons["train"] == f"{VOLUME}/model: taken from the store"
    assert reasons["prepare-a"].startswith("it shares a volume")


def test_nothing_runs_for_a_stored_target() -> None:
    assert plan_pods(workload(stored="metric")).run == ()


def test_a_stored_file_of_an_overwritten_input_is_named_by_its_bytes() -> None:
    """Of two versions at one place, each reader needs the one that it read."""
    old, new = found("data", "first"), found("other", "second")
    plan = plan_pods(
        ancestry(
            found("z", "reader"),
            ran("first", 1, makes="data"),
            ran("second", 2, makes="other"),
            ran("reader", 3, old, makes="z"),
            ran("later", 4, new),
        )
    )
    assert names(plan) == ["first", "reader"]


def test_without_files_every_earlier_writer_runs() -> None:
    """With the audit witness alone, a Pod finds the whole volume."""
    whole = FoundVersion(locator=VOLUME)
    pods = [ran(name, at, whole, makes=name) for at, name in enumerate("abcd")]
    plan = plan_pods(ancestry(found("d", "d"), *pods))
    assert names(plan) == ["a", "b", "c", "d"]
    assert plan.pods_by_file == plan.pods_by_volume == 4


def test_pods_that_ran_side_by_side_on_a_volume_do_not_wait_for_each_other() -> None:
    whole = FoundVersion(locator=VOLUME)
    pods = [
        AncestorPod(
            uid=Uid(name), namespace="ml", name=name, started=at, ended=9, inputs=(whole,),
            outputs=(MadeVersion(locator=Locator(f"{VOLUME}/{name}")),), volumes=(VOLUME,),
        )
        for at, name in enumerate("abc")
    ]  # fmt: skip
    target = FoundVersion(locator=Locator(f"{VOLUME}/a"), makers=(Uid("a"),))
    plan = plan_pods(ancestry(target, *pods))
    assert names(plan) == ["a", "b", "c"]
    assert plan.run[0].why == f"the target needs {VOLUME}/a, which is not stored"


def test_a_pod_that_reads_what_it_wrote_needs_nobody() -> None:
    plan = plan_pods(ancestry(found("z", "a"), ran("a", 1, found("z", "a"), makes="z")))
    assert names(plan) == ["a"]


def test_a_file_that_its_maker_replaced_later_comes_from_its_maker() -> None:
    plan = plan_pods(
        ancestry(
            found("z", "b"), ran("a", 1, makes="last"), ran("b", 2, found("first", "a"), makes="z")
        )
    )
    assert names(plan) == ["a", "b"]


def test_images_and_secrets_are_not_restored() -> None:
    image = FoundVersion(locator=Locator("image://sha256:0"))
    secret = FoundVersion(locator=Locator("secret://ml/key"))
    assert names(plan_pods(ancestry(found("z", "a"), ran("a", 1, image, secret, makes="z")))) == [
        "a"
    ]


def test_a_file_of_a_node_is_said_not_to_be_restored() -> None:
    cache = FoundVersion(locator=Locator("file://m1/cache"), makers=(Uid("warm"),))
    plan = plan_pods(ancestry(found("z", "a"), ran("warm", 1), ran("a", 2, cache, makes="z")))
    assert [(choice.pod.name, choice.why) for choice in plan.skipped] == [
        ("warm", "a found file://m1/cache, which a reproduction does not restore")
    ]


def test_what_nobody_made_and_nothing_stores_is_named() -> None:
    with pytest.raises(NotFound) as caught:
        plan_pods(ancestry(found("z", "a"), ran("a", 1, found("raw"), makes="z")))
    assert f"the Pod a needs {VOLUME}/raw" in caught.value.message


NAMES = "abcdef"
READS = st.sets(st.sampled_from(NAMES), max_size=3)
MAKES = st.sets(st.sampled_from(NAMES), min_size=1, max_size=2)
HISTORIES = st.lists(st.tuples(READS, MAKES), min_size=1, max_size=6)


@given(HISTORIES, st.sets(st.sampled_from(NAMES)))
def test_none_is_smaller_and_each_finds_its_inputs(
    drawn: list[tuple[set[str], set[str]]], stored: set[str]
) -> None:
    """A name stands for bytes: two Pods that write it made the same."""
    pods: list[AncestorPod] = []
    makers: dict[str, str] = {}
    for at, (reads, makes) in enumerate(drawn):
        inputs = [
            found(name, *([makers[name]] if name in makers else []), stored=name in stored)
            for name in sorted(reads)
            if name in makers or name in stored
        ]
        pods.append(ran(f"p{at}", at, *inputs, makes=" ".join(sorted(makes))))
        makers |= dict.fromkeys(makes, f"p{at}")
    wanted = sorted(drawn[-1][1])[0]
    target = found(wanted, makers[wanted], stored=wanted in stored)
    plan = plan_pods(ancestry(target, *pods))
    there = set(stored)
    for choice in plan.run:
        assert {one.locator.rsplit("/", 1)[1] for one in choice.pod.inputs} <= there
        there |= {one.locator.rsplit("/", 1)[1] for one in choice.pod.outputs}
    assert wanted in there
    assert len(plan.run) + len(plan.skipped) == len(pods)
    assert len(plan.run) == smallest(wanted, pods, stored)


def smallest(wanted: str, pods: list[AncestorPod], stored: set[str]) -> int:
    for count in range(len(pods) + 1):
        for some in combinations(pods, count):
            there = set(stored)
            for _ in some:
                for pod in some:
                    if {one.locator.rsplit("/", 1)[1] for one in pod.inputs} <= there:
                        there |= {one.locator.rsplit("/", 1)[1] for one in pod.outputs}
            if wanted in there:
                return count
    raise AssertionError("the history itself makes it")
