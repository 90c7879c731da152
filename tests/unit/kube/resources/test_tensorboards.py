"""What becomes of a Tensorboard."""

import pytest
from tests.unit.kube.sample_resources import (
    as_child,
    cluster_state,
    event,
    of_kind,
    pod,
    tensorboard,
)

from clew.kube.controller.model import STOPPED
from clew.kube.controller.options import Istio, Options
from clew.kube.objects import Json
from clew.kube.resources.tensorboards import SECRET, decide


def pod_of(board: Json) -> Json:
    made = of_kind(
        decide(board, cluster_state(), Options(tensorboard_image="tb:1")).children, "Deployment"
    )
    found: Json = made["spec"]["template"]["spec"]
    return found


def test_children_are_upstream_s() -> None:
    made = decide(
        tensorboard("pvc://data/runs/a"), cluster_state(), Options(istio=Istio())
    ).children
    service, workload = of_kind(made, "Service"), of_kind(made, "Deployment")
    assert service["spec"]["selector"] == {"app": "curves"}
    assert service["spec"]["ports"] == [
        {"name": "http-curves", "port": 80, "targetPort": 6006, "protocol": "TCP"}
    ]
    assert workload["spec"]["selector"] == {"matchLabels": {"app": "curves"}}
    way = of_kind(made, "VirtualService")
    assert way["metadata"]["name"] == "curves"
    [route] = way["spec"]["http"]
    assert route["match"] == [{"uri": {"prefix": "/tensorboard/me/curves/"}}]
    assert route["rewrite"] == {"uri": "/"}
    assert route["timeout"] == "300s"


def test_a_claim_is_mounted_to_be_read() -> None:
    found = pod_of(tensorboard("pvc://data/runs/a"))
    [container] = found["containers"]
    assert container["image"] == "tb:1"
    assert container["args"] == ["--logdir=/tensorboard_logs/", "--bind_all"]
    assert container["volumeMounts"] == [
        {
            "name": "tbpd",
            "mountPath": "/tensorboard_logs/",
            "readOnly": True,
            "subPath": "runs/a",
        }
    ]
    assert found["volumes"] == [{"name": "tbpd", "persistentVolumeClaim": {"claimName": "data"}}]
    assert set(container["resources"]) == {"requests", "limits"}


def test_a_whole_claim_has_no_path() -> None:
    [mount] = pod_of(tensorboard("pvc://data"))["containers"][0]["volumeMounts"]
    assert "subPath" not in mount


def test_an_object_store_with_a_secret() -> None:
    found = pod_of(tensorboard("s3://bucket/runs", annotations={SECRET: "keys"}))
    assert "volumes" not in found
    [container] = found["containers"]
    assert container["args"][0] == "--logdir=s3://bucket/runs"
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]


def test_a_whole_bucket_is_named_as_tensorboard_can_read_it() -> None:
    [container] = pod_of(tensorboard("s3://bucket"))["containers"]
    assert container["args"][0] == "--logdir=s3://bucket/"


@pytest.mark.parametrize("path", ["s3://bucket/runs", "gs://bucket/runs"])
def test_a_secret_that_is_not_there_keeps_nothing_from_starting(path: str) -> None:
    found = pod_of(tensorboard(path))
    secrets = [entry["secretRef"] for entry in found["containers"][0].get("envFrom", ())]
    secrets += [volume["secret"] for volume in found.get("volumes", ())]
    assert [secret["optional"] for secret in secrets] == [True]


def test_a_plain_path_is_in_the_legacy_claim() -> None:
    found = pod_of(tensorboard("/logs"))
    assert found["volumes"][0]["persistentVolumeClaim"] == {"claimName": "tb-volume"}
    assert found["containers"][0]["volumeMounts"][0]["mountPath"] == "/logs"


@pytest.mark.parametrize("path", ["pvc://", "pvc:///x", "pvc://data/../../etc", "runs", ""])
def test_a_path_that_cannot_work_makes_nothing(path: str) -> None:
    decision = decide(tensorboard(path), cluster_state(), Options())
    assert decision.children == ()
    [condition] = decision.status["conditions"]
    assert condition["reason"] == "InvalidSpec"


def test_an_edit_of_the_path_is_another_deployment() -> None:
    assert pod_of(tensorboard("pvc://data/a")) != pod_of(tensorboard("pvc://data/b"))


def test_status_has_one_condition_that_is_true_now() -> None:
    board = tensorboard("pvc://data")
    workload = of_kind(decide(board, cluster_state(), Options()).children, "Deployment")
    said = 'pods "curves-x" is forbidden: exceeded quota: small'
    failing = {"type": "ReplicaFailure", "status": "True", "message": said}
    refused = decide(
        board, cluster_state(as_child(workload, conditions=[failing])), Options()
    ).status
    [condition] = refused["conditions"]
    assert (condition["reason"], condition["deploymentState"]) == (
        "QuotaExceeded",
        "ReplicaFailure",
    )
    running = pod("curves-x", conditions=[{"type": "Ready", "status": "True"}])
    around = cluster_state(
        as_child(workload, readyReplicas=1), pods=[running], events=[event("x", "old")]
    )
    status = decide({**board, "status": refused}, around, Options()).status
    [condition] = status["conditions"]
    assert (condition["status"], condition["deploymentState"]) == ("True", "Available")
    assert status["readyReplicas"] == 1


def test_it_can_be_stopped() -> None:
    decision = decide(
        tensorboard("pvc://data", annotations={STOPPED: ""}), cluster_state(), Options()
    )
    assert of_kind(decision.children, "Deployment")["spec"]["replicas"] == 0
    assert decision.status["conditions"][0]["reason"] == "Stopped"
