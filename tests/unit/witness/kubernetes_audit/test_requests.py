"""Requests: versions of ConfigMaps and Secrets, and who touched a Pod by hand."""

import json
from typing import Any

import pytest
from blake3 import blake3
from tests.unit.witness.kubernetes_audit.audit_log import (
    CONTROLLER,
    POD,
    POD_UID,
    audit,
    fold,
    of,
    pod,
    time,
)

from clew.prov.cluster.facets import RequestFacet, read_facet
from clew.prov.events import Content, Gap, Generated, Informed, Invalidated, Started


def config_map(data: dict[str, str], **more: Any) -> dict[str, Any]:
    about = {"name": "settings", "namespace": "team", "uid": "u", "resourceVersion": "7"}
    return {"kind": "ConfigMap", "metadata": about, "data": data, **more}


def test_version_of_a_config_map_has_its_content() -> None:
    found = fold(
        audit("create", "configmaps", config_map({"b": "2", "a": "1"}), at=1.0),
        audit("patch", "configmaps", config_map({"a": "2"}), name="settings", at=2.0),
    )
    first, second = of(found, Content)
    expected = b'{"binaryData":{},"data":{"a":"1","b":"2"}}'

    assert found.contents == [expected, b'{"binaryData":{},"data":{"a":"2"}}']
    assert (first.digest, first.stored) == (f"blake3:{blake3(expected).hexdigest()}", True)
    assert first.digest != second.digest
    versions = [one.version for one in of(found, Generated)]
    assert {one.locator for one in versions} == {"configmap://team/settings"}
    assert len({one.maker for one in versions}) == 2
    (facet, _) = [read_facet(one.facets, RequestFacet) for one in of(found, Started)]
    assert facet is not None
    assert (facet.verb, facet.name, facet.resource_version) == ("create", "settings", "7")


@pytest.mark.parametrize(
    "data", [{"password": "x"}, {"my.ini": "url=postgres://me:hunter22@db/x"}, {"API_TOKEN": "x"}]
)
def test_content_with_a_secret_is_not_kept(data: dict[str, str]) -> None:
    found = fold(audit("create", "configmaps", config_map(data)))

    assert found.contents == []
    assert [one.stored for one in of(found, Content)] == [False]
    assert of(found, Gap)[0].locator == "configmap://team/settings"


def test_lock_of_a_leader_is_no_input() -> None:
    locked = config_map({})
    locked["metadata"]["annotations"] = {"control-plane.alpha.kubernetes.io/leader": "{}"}

    assert fold(audit("update", "configmaps", locked)).events == []


def test_deleted_config_map_is_invalidated() -> None:
    found = fold(audit("delete", "configmaps", config_map({}), name="settings"))

    assert [one.version.locator for one in of(found, Invalidated)] == ["configmap://team/settings"]
    assert found.contents == []


def test_many_are_deleted_with_one_request() -> None:
    answer = {"kind": "ConfigMapList", "items": [config_map({"a": "1"}), config_map({"a": "2"})]}
    found = fold(audit("deletecollection", "configmaps", answer))

    assert {one.version.locator for one in of(found, Invalidated)} == {"configmap://team/settings"}


def test_secret_has_a_name_and_no_content() -> None:
    found = fold(
        audit("create", "secrets", name="password", requestObject={"data": {"x": "CANARY"}}),
        audit("delete", "secrets", name="password", at=2.0),
        audit("create", "secrets", at=3.0),
    )

    assert [one.version.locator for one in of(found, Generated)] == ["secret://team/password"]
    assert [one.version.locator for one in of(found, Invalidated)] == ["secret://team/password"]
    assert of(found, Content) == []
    assert [one.what for one in of(found, Gap)] == ["the name of a Secret"]
    assert "CANARY" not in str(found.events)


@pytest.mark.parametrize("how", ["exec", "attach", "portforward"])
def test_pod_is_touched_by_hand(how: str) -> None:
    opened = {"verb": "get", "resource": f"pods/{how}", "name": "train", "code": 101}
    found = fold(audit(**opened, stage="ResponseStarted"), audit(**opened))
    (made,) = of(found, Generated)
    (request,) = of(found, Started)

    assert (made.version.locator, made.how) == ("pod://team/train", how)
    assert (request.kind, request.agent) == ("request", "ann")


@pytest.mark.parametrize(
    ("event", "how"),
    [
        ({"resource": "pods"}, "edit"),
        ({"resource": "pods/resize"}, "edit"),
        ({"resource": "pods/ephemeralcontainers"}, "ephemeralcontainers"),
        ({"resource": "pods/status"}, None),
        ({"resource": "pods", "user": CONTROLLER}, None),
        ({"resource": "pods", "user": CONTROLLER, "agent": "kubectl/v1.36"}, "edit"),
    ],
)
def test_edit_counts_if_a_person_made_it(event: dict[str, Any], how: str | None) -> None:
    found = fold(audit("patch", answer=pod(), name="train", **event))

    assert [one.how for one in of(found, Generated)] == ([] if how is None else [how])


def test_edit_of_what_creates_pods_informs_it() -> None:
    about = {"name": "web", "namespace": "team", "uid": POD_UID, "creationTimestamp": time(0)}
    answer = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": about}
    found = fold(audit("patch", "apps/deployments", answer, name="web"))
    (request,) = of(found, Started, kind="request")

    assert [(one.activity, one.by) for one in of(found, Informed)] == [(POD, request.activity)]


def test_client_cannot_choose_the_uid_of_a_request() -> None:
    """The header Audit-ID sets the auditID."""
    change = config_map({"a": "1"})
    found = fold(audit("create", "configmaps", change, audit_id=POD_UID, user="eve"))
    (request,) = of(found, Started)
    again = audit("create", "configmaps", change, audit_id=POD_UID, user="eve")
    other = audit("create", "configmaps", change, audit_id=POD_UID, user="ann")

    assert request.execution != POD
    assert of(fold(again), Started)[0] == request
    assert of(fold(other), Started)[0].execution != request.execution


def test_user_is_the_one_who_was_impersonated() -> None:
    event = audit("create", "configmaps", config_map({}), impersonatedUser={"username": "bob"})

    assert of(fold(event), Started)[0].agent == "bob"


def test_missing_answers_are_reported_once() -> None:
    events = [audit("patch", "configmaps", name=f"c{n}") for n in range(3)]
    truncated = audit("create", "pods", annotations={"audit.k8s.io/truncated": "true"})
    gaps = of(fold(*events, truncated, truncated | {"requestReceivedTimestamp": time(3.0)}), Gap)

    assert len(gaps) == 3
    assert "level RequestResponse" in gaps[0].why
    assert "truncate" in gaps[1].why
    assert json.dumps([one.what for one in gaps]).count("team") == 3
