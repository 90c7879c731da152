"""What is restored before each Pod, and what is expected of it."""

from typing import Any

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import AncestorPod, FoundVersion, MadeVersion
from clew.prov.cluster.facets import PodFacet
from clew.replay.pods.stages import Stage, claim_name, plan_stages

VOLUME = "pvc://ml/data@pv1"
DIGEST = {name: Digest(f"blake3:{name * 64}") for name in "abc"}


def found(path: str, digest: str, *makers: str, stored: bool = True) -> FoundVersion:
    return FoundVersion(
        locator=Locator(path if "://" in path else f"{VOLUME}/{path}"),
        makers=tuple(map(Uid, makers)),
        digest=DIGEST[digest],
        stored=stored,
        size=3,
    )


def made(path: str, digest: str) -> MadeVersion:
    locator = Locator(path if "://" in path else f"{VOLUME}/{path}")
    return MadeVersion(locator=locator, digest=DIGEST[digest], size=3)


def pod(uid: str, *inputs: FoundVersion, outputs: tuple[MadeVersion, ...] = ()) -> AncestorPod:
    return AncestorPod(
        uid=Uid(uid),
        namespace="ml",
        name=uid,
        started=1,
        inputs=inputs,
        outputs=outputs,
        volumes=(Locator(VOLUME),),
    )


def plan(*pods: AncestorPod, **spec: Any) -> list[Stage]:
    facets = {one.uid: PodFacet(namespace="ml", name=one.name, spec=spec) for one in pods}
    return list(plan_stages(pods, facets).stages)


def test_stored_inputs_are_restored_and_those_of_an_earlier_pod_are_not() -> None:
    first, second = plan(
        pod("first", found("in/raw", "a"), outputs=(made("out/b", "b"),)),
        pod("second", found("in/raw", "a"), found("out/b", "b", "first", stored=False)),
    )
    assert [one.place.path for one in first.restore] == [b"in/raw"]
    assert [one.path for one in first.directories] == [b"out"]
    assert [(one.place.path, one.digest) for one in first.expect] == [(b"out/b", DIGEST["b"])]
    assert second.restore == () and second.problems == ()


def test_each_pod_finds_the_version_that_it_read() -> None:
    """One Pod replaces what an earlier and a later one read."""
    stages = plan(
        pod("reader", found("x", "a")),
        pod("writer", outputs=(made("x", "b"),)),
        pod("late", found("x", "a")),
        pod("last", found("x", "b", "writer", stored=False)),
    )
    assert [[one.digest for one in stage.restore] for stage in stages] == [
        [DIGEST["a"]],
        [],
        [DIGEST["a"]],
        [],
    ]
    assert "an earlier content" in stages[3].problems[0]


def test_objects_have_their_bucket_and_key() -> None:
    (stage,) = plan(pod("a", found("s3://raw/x/y", "a"), outputs=(made("s3://new/z", "b"),)))
    (restored,), (expected,) = stage.restore, stage.expect
    assert (restored.place.container, restored.place.path) == ("raw", b"x/y")
    assert (expected.place.container, expected.place.is_object) == ("new", True)
    assert stage.directories == ()


def test_a_recorded_path_that_leaves_the_volume_names_nothing() -> None:
    paths = ("../x", "a/../../x", "a//b", "./a", "a%00b", "")
    (stage,) = plan(pod("a", *(found(path, "a") for path in paths), outputs=(made("../y", "b"),)))
    assert stage.restore == () and stage.expect == () and stage.directories == ()


def test_claims_of_the_spec_are_those_of_its_own_namespace() -> None:
    foreign = FoundVersion(locator=Locator("pvc://other/data@pv9/x"))
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "x"}, "odd"]
    (stage,) = plan(pod("a", foreign), volumes=volumes)
    assert stage.claims == {"data": claim_name("ml", "data", "pv1")}
    assert len(claim_name("n" * 253, "c" * 253, "v" * 253)) < 30


def test_config_maps_and_secrets() -> None:
    version = FoundVersion(locator=Locator("secret://ml/key"))
    other = FoundVersion(locator=Locator("secret://other/key"))
    (stage,) = plan(pod("a", found("configmap://ml/settings", "c"), version, other))
    assert stage.config_maps == {"settings": DIGEST["c"]}
    assert stage.secrets == {"key"}


def test_a_pod_without_a_recorded_spec() -> None:
    stages = plan_stages([pod("a")], {})
    assert stages.stages[0].problems == ("its spec is not recorded",)


def test_a_bucket_that_keeps_versions_gives_an_old_one_back() -> None:
    kept = FoundVersion(
        locator=Locator("s3://raw/x"), digest=Digest("etag:1"), source="versionId=v7", size=3
    )
    lost = FoundVersion(locator=Locator("s3://raw/y"), digest=Digest("etag:2"), source="etag=2")
    stage, other = plan(pod("a", kept), pod("b", lost))
    assert [(one.digest, one.version) for one in stage.restore] == [(None, "v7")]
    assert stage.problems == ()
    assert "is not stored" in other.problems[0]


def test_only_digests_that_can_be_computed_are_compared() -> None:
    outputs = tuple(
        MadeVersion(locator=Locator(f"{VOLUME}/{number}"), digest=Digest(digest))
        for number, digest in enumerate(("shake_128:0", "etag:0", "sha256:0"))
    )
    (stage,) = plan(pod("a", outputs=outputs))
    assert [one.digest for one in stage.expect] == ["sha256:0"]
    assert [*stage.unknown] == [f"{VOLUME}/0", f"{VOLUME}/1"]
