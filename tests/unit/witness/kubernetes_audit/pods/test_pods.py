"""Pods and containers from audit events: what they are and read, when they began and ended."""

from typing import Any

import pytest
from tests.unit.witness.kubernetes_audit.audit_log import (
    CONTAINER_ID,
    CONTROLLER,
    IMAGE,
    NODE,
    POD,
    SECOND,
    START,
    audit,
    ended,
    fold,
    of,
    pod,
    running,
)

from clew.documents.ids import Uid
from clew.prov.cluster.facets import ContainerFacet, PodFacet, read_facet
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.event_validation import check_events
from clew.prov.events import Alias, Content, Ended, Gap, Generated, Started, Used
from clew.witness.kubernetes_audit.fold_state import FoldState

CONTAINER = f"{POD}/{CONTAINER_ID}"


def at(second: int) -> int:
    """The end of a second of an object."""
    return (START + second) * SECOND + SECOND - 1


def lifecycle(**spec: Any) -> list[dict[str, Any]]:
    return [
        audit("create", "pods", pod(**spec), user=CONTROLLER),
        audit("patch", "pods/status", pod(nodeName="node1", status=running(), **spec), user=NODE),
        audit("patch", "pods/status", pod(nodeName="node1", status=ended(), **spec), user=NODE),
    ]


def test_pod_has_its_creator_node_owner_and_spec() -> None:
    owner = {"kind": "Job", "name": "train", "uid": "j", "apiVersion": "batch/v1"}
    found = fold(*lifecycle(metadata={"ownerReferences": [owner | {"controller": True}]}))
    pods = of(found, Started, kind="pod")
    last = pods[-1]
    facet = read_facet(last.facets, PodFacet)

    assert facet is not None
    assert (last.name, last.node, last.at) == ("team/train", "node1", at(0))
    assert last.agent == CONTROLLER["username"]
    assert facet.owner is not None
    assert (facet.owner.kind, facet.owner.name) == ("Job", "train")
    assert facet.labels == {"app": "train"}
    assert facet.spec["containers"][0]["image"] == "app:1"
    assert len(pods) == 2, "without a node, and with it"


def test_container_reads_its_image_by_digest() -> None:
    found = fold(*lifecycle(container={"command": ["python"], "args": ["train.py"]}))
    (container,) = of(found, Started, kind="container")
    facet = read_facet(container.facets, ContainerFacet)
    digest = IMAGE.partition("@")[2]

    assert (container.activity, container.parent) == (CONTAINER, POD)
    assert container.at == at(5)
    assert container.command == ("python", "train.py")
    assert container.image == "app:1"
    assert facet == ContainerFacet(name="main")
    (used,) = of(found, Used, how="exec")
    assert used.version.locator == f"image://{digest}"
    assert of(found, Content)[0].digest == digest


def test_container_and_pod_end_with_the_status_of_the_container() -> None:
    found = fold(audit("patch", "pods/status", pod(status=ended(9, code=3)), user=NODE))
    ends = of(found, Ended)

    assert [(one.activity, one.status, one.at) for one in ends] == [
        (CONTAINER, 3, at(9)),
        (POD, 3, at(9)),
    ]
    assert ends[0].facets == {"reason": "Error"}


def test_pod_succeeds_whatever_status_its_sidecar_leaves() -> None:
    status = ended(9)
    (main,) = status["containerStatuses"]
    killed = {"terminated": main["state"]["terminated"] | {"exitCode": 137}}
    status["initContainerStatuses"] = [main | {"name": "sidecar", "state": killed}]
    found = fold(audit("patch", "pods/status", pod(status=status), user=NODE))

    assert [one.status for one in of(found, Ended) if one.activity == POD] == [0]


def test_restarted_container_is_another_activity() -> None:
    before = {
        "terminated": {
            "exitCode": 1,
            "startedAt": "2026-11-18T12:00:00Z",
            "finishedAt": "2026-11-18T12:00:01Z",
            "containerID": f"containerd://{'b' * 64}",
        }
    }
    status = running(lastState=before, restartCount=1)
    found = fold(audit("patch", "pods/status", pod(status=status), user=NODE))
    facets = [
        (one.activity[-1], read_facet(one.facets, ContainerFacet).restart)
        for one in of(found, Started, kind="container")
    ]

    assert facets == [("b", 0), ("c", 1)]


def test_inputs_of_a_container() -> None:
    mounts = [{"name": name} for name in ("data", "scratch", "settings", "password", "token")]
    container = {
        "volumeMounts": [*mounts, {"name": "model", "readOnly": True}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "more", "key": "k"}}}],
        "envFrom": [{"secretRef": {"name": "keys"}}],
    }
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "model", "persistentVolumeClaim": {"claimName": "model"}},
        {"name": "unused", "persistentVolumeClaim": {"claimName": "unused"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "password", "secret": {"secretName": "password"}},
        {
            "name": "token",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt"}},
                    {"configMap": {"name": "extra"}},
                ]
            },
        },
    ]
    answer = pod(container=container, volumes=volumes, status=running())
    found = fold(audit("patch", "pods/status", answer, user=NODE))

    assert [one.version.locator for one in of(found, Used, how="open")] == [
        "pvc://team/data",
        "pvc://team/train-scratch",
        "configmap://team/settings",
        "secret://team/password",
        "configmap://team/extra",
        "pvc://team/model",
        "configmap://team/more",
        "secret://team/keys",
    ]
    assert [one.version.locator for one in of(found, Generated)] == [
        "pvc://team/data",
        "pvc://team/train-scratch",
    ]
    assert {one.version.maker for one in of(found, Generated)} == {CONTAINER}
    assert {one.version.maker for one in of(found, Used)} == {POD}


def test_name_of_an_object_that_does_not_exist_forges_no_place() -> None:
    volumes = [{"name": "x", "configMap": {"name": "../other/settings", "optional": True}}]
    container = {"volumeMounts": [{"name": "x"}]}
    answer = pod(container=container, volumes=volumes, status=running())

    assert of(fold(audit("patch", "pods/status", answer)), Used, how="open") == []


def test_addresses_belong_to_the_pod_while_it_has_a_network() -> None:
    found = fold(*lifecycle())
    aliases = {(one.a, one.b, one.at) for one in of(found, Alias)}

    assert aliases == {
        ("pod://team/train", f"pod://{POD}", at(0)),
        ("ip://10.0.0.7", f"pod://{POD}", at(4)),
    }
    assert not any(
        one.a.startswith("ip:") for one in of(fold(*lifecycle(hostNetwork=True)), Alias)
    ), "that is the address of the node"


@pytest.mark.parametrize(("grace", "ends"), [(30, False), (0, True)])
def test_pod_ends_when_it_is_gone(grace: int, ends: bool) -> None:
    about = {"deletionTimestamp": "2026-11-18T12:00:00Z", "deletionGracePeriodSeconds": grace}
    answer = pod(metadata=about, status=running())
    found = fold(audit("delete", "pods", answer, at=7.5))

    assert [one.at for one in of(found, Ended)] == ([(START + 7) * SECOND + SECOND // 2] * ends)


def test_static_pod_has_the_uid_that_its_node_knows() -> None:
    mirrored = "b" * 32
    about = {"annotations": {"kubernetes.io/config.mirror": mirrored}}
    answer = pod(metadata=about, nodeName="node1")
    state = FoldState()

    assert of(fold(audit("create", "pods", answer, user=NODE), state=state), Started)[0].activity
    assert {
        one.activity for one in of(fold(audit("create", "pods", answer, user=NODE)), Started)
    } == {mirrored}
    later = fold(audit("patch", "pods/status", answer, user=NODE), state=state)
    assert {one.activity for one in of(later, Started)} == {mirrored}


@pytest.mark.parametrize("user", ["eve", {"username": "system:node:node2", "groups": []}])
def test_only_the_node_gives_a_static_pod_its_uid(user: Any) -> None:
    about = {"annotations": {"kubernetes.io/config.mirror": "b" * 32}}
    found = fold(audit("create", "pods", pod(metadata=about, nodeName="node1"), user=user))

    assert {one.activity for one in of(found, Started)} == {POD}


def test_huge_spec_does_not_hide_the_pod() -> None:
    """The server refuses an event with so many values."""
    odd = [{"key": f"k{n}", "operator": "Exists"} for n in range(30_000)]
    found = fold(audit("create", "pods", pod(tolerations=odd)))
    check_events(Uid(POD), number_events(found.events))

    assert of(found, Started)[0].name == "team/train"
    assert len(of(found, Gap)) == 1


def test_what_did_not_happen_gives_no_events() -> None:
    failed = audit("create", "pods", pod(), code=403)
    dry = audit("create", "pods", pod(), uri="/api/v1/namespaces/team/pods?dryRun=All")
    options = {"kind": "DeleteOptions", "dryRun": ["All"]}
    deleted = audit("delete", "pods", pod(), requestObject=options)

    assert fold(failed, dry, deleted).events == []
