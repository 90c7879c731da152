"""The objects of a scratch space, and which of them killed commands left."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clew.kube.scratch import manifests
from clew.kube.scratch.manifests import LABEL, Space

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
SPACE = Space("ab12", "clew-reproduce-ab12", "uid-1")


def lease(name: str, namespace: str, age: int) -> dict[str, Any]:
    return manifests.make_lease(Space(name, namespace), "host 1", NOW - timedelta(seconds=age))


def namespace(name: str, label: str | None, age: int = 3600) -> dict[str, Any]:
    made = manifests.format_micro_time(NOW - timedelta(seconds=age))
    labels = {LABEL: label} if label is not None else {}
    return {"metadata": {"name": name, "labels": labels, "creationTimestamp": made}}


def test_everything_belongs_to_the_lease() -> None:
    made = manifests.put_into(SPACE, manifests.make_claim("v", size="1Gi", storage_class=None))
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert made["metadata"]["labels"] == {LABEL: "ab12"}
    assert made["metadata"]["namespace"] == "clew-reproduce-ab12"


def test_what_is_renewed_stays_and_what_is_not_goes() -> None:
    namespaces = [namespace("clew-reproduce-a", "a"), namespace("clew-reproduce-b", "b")]
    leases = [lease("a", "clew-reproduce-a", 10), lease("b", "clew-reproduce-b", 1000)]
    assert manifests.find_abandoned(namespaces, leases, NOW) == (["clew-reproduce-b"], [])


def test_a_namespace_without_a_lease_is_new_or_left() -> None:
    namespaces = [namespace("clew-reproduce-a", "a", 10), namespace("clew-reproduce-b", "b")]
    assert manifests.find_abandoned(namespaces, [], NOW) == (["clew-reproduce-b"], [])


@pytest.mark.parametrize(
    ("name", "label"), [("prod", "prod"), ("prod", "x"), ("clew-reproduce-a", "b")]
)
def test_a_label_alone_deletes_no_namespace(name: str, label: str) -> None:
    leases = [lease(label, name, 1000)]
    assert manifests.find_abandoned([namespace(name, label)], leases, NOW)[0] == []


def test_in_a_namespace_of_the_user_only_the_lease_goes() -> None:
    leases = [lease("a", "mine", 1000), lease("b", "mine", 10)]
    other = {**lease("c", "mine", 1000), "metadata": {"name": "other", "namespace": "mine"}}
    assert manifests.find_abandoned([], [*leases, other], NOW) == (
        [],
        [("mine", "clew-reproduce-a")],
    )


@pytest.mark.parametrize(
    "spec", [{}, {"renewTime": "x", "leaseDurationSeconds": 5}, {"renewTime": None}]
)
def test_a_lease_that_says_nothing_has_expired(spec: dict[str, Any]) -> None:
    assert manifests.is_expired({"spec": spec}, NOW)


def test_no_lease_holds_forever() -> None:
    found = lease("a", "b", 3600)
    found["spec"]["leaseDurationSeconds"] = 10**12
    assert manifests.is_expired(found, NOW)


def test_the_helper_has_the_volumes_and_nothing_else() -> None:
    spec = manifests.make_helper("h", "image", ["v-1", "v-2"], seconds=60)["spec"]
    (container,) = spec["containers"]
    assert [one["mountPath"] for one in container["volumeMounts"]] == [
        "/volumes/v-1",
        "/volumes/v-2",
    ]
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]


def test_a_lease_stands_for_the_buckets_of_its_own_command_only() -> None:
    """Who may make Leases may copy everything of another one but its uid."""
    made = manifests.make_lease(Space("0123abcd", "n"), "host 1", NOW, buckets=2)
    owner, other = f"{1:08x}-0000-4000-8000-{1:012x}", f"{2:08x}-0000-4000-8000-{2:012x}"
    made["metadata"]["uid"] = owner
    own = [manifests.bucket_name(manifests.bucket_owner(owner), number) for number in (0, 1)]
    assert manifests.list_buckets(made) == own
    assert max(map(len, own)) < 60  # S3 permits 63
    made["metadata"]["uid"] = other
    made["metadata"]["annotations"][manifests.BUCKETS] = "9" * 30
    assert len(manifests.list_buckets(made)) == manifests.MAX_BUCKETS
    assert not set(own) & set(manifests.list_buckets(made))
    made["metadata"]["uid"] = "production-data"
    assert manifests.list_buckets(made) == []
