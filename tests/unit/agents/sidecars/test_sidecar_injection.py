"""The sidecar in a Pod: the same each time, whatever annotations and names say."""

import base64
import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.agents.sidecars.admission import Malformed, review
from clew.agents.sidecars.sidecar_injection import accepts_sidecar, inject_sidecar
from clew.agents.sidecars.traffic_sidecar_names import (
    CERTIFICATES,
    CONTAINER,
    LABEL,
    LOG_VOLUME,
    REDIRECT,
    STORES,
    TLS_STORES,
    USER,
)
from clew.errors import NotAllowed, UsageError

IMAGE = "docker.io/clew/sidecar:1"
CHANGE = partial(inject_sidecar, image=IMAGE)


def pod(*, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    about = {"name": "train", "namespace": "team", "annotations": annotations or {}}
    containers = [{"name": "main", "image": "app", "volumeMounts": []}]
    return {"metadata": about, "spec": {"containers": containers, **spec}}


def inject(found: dict[str, Any]) -> dict[str, Any]:
    changed = inject_sidecar(found, image=IMAGE)
    assert changed is not None
    return changed


def config_of(found: dict[str, Any]) -> dict[str, Any]:
    (sidecar,) = (one for one in found["spec"]["initContainers"] if one["name"] == CONTAINER)
    config: dict[str, Any] = json.loads(sidecar["args"][0].replace("$$(", "$("))
    return config


def test_the_sidecar_starts_before_the_containers_of_the_pod() -> None:
    found = inject(pod(initContainers=[{"name": "fetch", "image": "app"}]))
    names = [one["name"] for one in found["spec"]["initContainers"]]
    assert names == [REDIRECT, CONTAINER, "fetch"]
    redirect, sidecar, _ = found["spec"]["initContainers"]
    assert sidecar["restartPolicy"] == "Always"
    assert "restartPolicy" not in redirect
    assert sidecar["securityContext"]["runAsUser"] == USER
    assert sidecar["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert redirect["securityContext"]["capabilities"]["add"] == ["NET_ADMIN", "NET_RAW"]
    assert found["spec"]["containers"] == pod()["spec"]["containers"]


def test_a_second_injection_changes_nothing() -> None:
    once = inject(pod(annotations={TLS_STORES: "s3.example:9000", CERTIFICATES: "own-ca"}))
    assert inject(once) == once


def test_what_stands_under_the_names_of_the_sidecar_is_replaced() -> None:
    fake = {"name": CONTAINER, "image": "evil", "restartPolicy": "Always"}
    volume = {"name": LOG_VOLUME, "hostPath": {"path": "/"}}
    found = inject(pod(initContainers=[fake], volumes=[volume]))
    assert found == inject(pod(initContainers=[], volumes=[]))
    as_container = {"name": REDIRECT, "image": "evil"}
    found = inject(pod(containers=[{"name": "main"}, as_container]))
    assert [one["name"] for one in found["spec"]["containers"]] == ["main"]


@pytest.mark.parametrize("group", ["containers", "initContainers", "ephemeralContainers"])
def test_a_pod_that_mounts_the_log_is_refused(group: str) -> None:
    own = {"name": "x", "volumeMounts": [{"name": LOG_VOLUME, "mountPath": "/log"}]}
    with pytest.raises(NotAllowed, match="log of the sidecar"):
        inject(pod(**{group: [own]}))


@pytest.mark.parametrize("field", ["runAsUser", "runAsGroup"])
def test_a_pod_with_the_user_or_the_group_of_the_sidecar_is_refused(field: str) -> None:
    evading = {field: USER}
    for found in (
        pod(securityContext=evading),
        pod(containers=[{"name": "main", "securityContext": evading}]),
        pod(initContainers=[{"name": "first", "securityContext": evading}]),
    ):
        with pytest.raises(NotAllowed, match=str(USER)):
            inject(found)
    inject(pod(securityContext={"runAsUser": 1000}))


@pytest.mark.parametrize("name", [STORES, TLS_STORES])
@pytest.mark.parametrize(
    "value",
    [
        'x"}], "admin": {', "a\nb", "*.example", "host:99999", "host:0", "-a", "a..b", "ü.example",
        "a,a", "http://host", "host/path", "%REQ(AUTHORIZATION)%", "$(SECRET)", "a b",
        ",".join(f"h{n}" for n in range(60)),
    ],
)  # fmt: skip
def test_a_malformed_annotation_is_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        inject(pod(annotations={name: value}))


def test_certificates_are_named_by_a_config_map() -> None:
    for value in ("../x", "A", "a/b", ""):
        with pytest.raises(UsageError, match=CERTIFICATES):
            inject(pod(annotations={CERTIFICATES: value}))


def test_tls_goes_to_the_hosts_that_are_named_and_to_no_other() -> None:
    found = config_of(inject(pod(annotations={TLS_STORES: "s3.example:9000, other.example"})))
    clusters = {one["name"]: one for one in found["static_resources"]["clusters"]}
    assert clusters["tls-0"]["original_dst_lb_config"] == {"upstream_port_override": 9000}
    assert clusters["tls-1"]["original_dst_lb_config"] == {"upstream_port_override": 443}
    assert "transport_socket" not in clusters["outbound"]


@given(value=st.text(max_size=40))
def test_no_annotation_changes_more_than_the_hosts(value: str) -> None:
    try:
        found = config_of(inject(pod(annotations={TLS_STORES: value})))
    except UsageError:
        return
    plain = config_of(inject(pod()))
    assert found.keys() == plain.keys()
    assert "admin" not in found
    listeners = found["static_resources"]["listeners"]
    assert [one["address"] for one in listeners] == [
        one["address"] for one in plain["static_resources"]["listeners"]
    ]


def test_pods_that_have_no_sidecar() -> None:
    assert accepts_sidecar(pod())
    assert not accepts_sidecar(pod(hostNetwork=True))
    excluded = pod()
    excluded["metadata"]["labels"] = {LABEL: "false"}
    assert not accepts_sidecar(excluded)


def ask(found: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"uid": "u1", "operation": "CREATE", "kind": {"kind": "Pod"}, "object": found, **more}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer: dict[str, Any] = review(json.dumps(body).encode(), CHANGE)
    assert answer["response"]["uid"] == "u1"
    return answer["response"]  # type: ignore[no-any-return]


def test_the_answer_is_a_patch_to_the_same_pod() -> None:
    answer = ask(pod())
    operations = json.loads(base64.b64decode(answer["patch"]))
    changed = pod()
    for one in operations:
        assert one["op"] == "add"
        changed["spec"][one["path"].removeprefix("/spec/")] = one["value"]
    assert changed == inject(pod())
    assert ask(changed) == {"uid": "u1", "allowed": True}
    assert ask(pod(hostNetwork=True)) == {"uid": "u1", "allowed": True}
    assert ask(pod(), operation="DELETE") == {"uid": "u1", "allowed": True}


def test_the_reason_of_a_refusal_names_the_annotation() -> None:
    answer = ask(pod(annotations={TLS_STORES: "a b"}))
    assert not answer["allowed"]
    assert TLS_STORES in answer["status"]["message"]


REVIEW = {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}}
ODD_POD = {"metadata": {}, "spec": {"containers": [1]}}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"{}", b"\xff", b"[" * 5000),
        b'{"apiVersion": "admission.k8s.io/v1beta1"}',
        *(
            json.dumps({"apiVersion": "admission.k8s.io/v1", "request": request}).encode()
            for request in (REVIEW, {**REVIEW, "object": ODD_POD})
        ),
    ],
)
def test_a_body_of_another_form_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        review(body, CHANGE)
