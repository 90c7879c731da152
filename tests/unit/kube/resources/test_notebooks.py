"""What becomes of a Notebook."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.sample_resources import (
    NOW,
    as_child,
    cluster_state,
    event,
    notebook,
    of_kind,
    pod,
)

from clew.kube.controller.model import DIGEST, RESTART, STOPPED
from clew.kube.controller.options import Istio, Options
from clew.kube.objects import Json
from clew.kube.resources.notebooks import HEADERS, REWRITE, decide

ISTIO = Options(istio=Istio())


def ready_of(status: Json) -> Json:
    [found] = [c for c in status["conditions"] if c["type"] == "Ready"]
    return dict(found)


def template(resource: Json, options: Options | None = None) -> Json:
    made = of_kind(decide(resource, cluster_state(), options or Options()).children, "StatefulSet")
    found: Json = made["spec"]["template"]
    return found


def test_children_are_upstream_s() -> None:
    made = decide(notebook(), cluster_state(), Options()).children
    workload, service = of_kind(made, "StatefulSet"), of_kind(made, "Service")
    assert [child["metadata"]["name"] for child in made] == ["first", "clew-first", "first"]
    assert workload["spec"]["replicas"] == 1
    assert workload["spec"]["selector"] == {"matchLabels": {"statefulset": "first"}}
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert labels == {"statefulset": "first", "notebook-name": "first"}
    container = workload["spec"]["template"]["spec"]["containers"][0]
    assert container["workingDir"] == "/home/jovyan"
    assert container["ports"] == [
        {"containerPort": 8888, "name": "notebook-port", "protocol": "TCP"}
    ]
    assert container["env"] == [{"name": "NB_PREFIX", "value": "/notebook/me/first"}]
    assert workload["spec"]["template"]["spec"]["securityContext"] == {"fsGroup": 100}
    assert service["spec"] == {
        "type": "ClusterIP",
        "selector": {"statefulset": "first"},
        "ports": [{"name": "http-first", "port": 80, "targetPort": 8888, "protocol": "TCP"}],
    }
    [owner] = service["metadata"]["ownerReferences"]
    assert owner["uid"] == "uid-first"
    assert owner["controller"] is True


def test_what_the_user_says_stays() -> None:
    resource = notebook(
        labels={"use-gpu": "true", "statefulset": "other"},
        annotations={
            "sidecar.istio.io/inject": "false",
            "kubectl.kubernetes.io/x": "1",
            "notebooks.kubeflow.org/last-activity": "2026",
            STOPPED: "2026",
            "clew.dev/idle-minutes": "5",
        },
    )
    spec = resource["spec"]["template"]["spec"]
    spec["securityContext"] = {"runAsUser": 5}
    spec["containers"][0] |= {
        "workingDir": "/work",
        "ports": [{"containerPort": 8787}],
        "env": [{"name": "NB_PREFIX", "value": "/mine"}],
    }
    before = copy.deepcopy(resource)
    made = decide(resource, cluster_state(), Options()).children
    found = of_kind(made, "StatefulSet")["spec"]["template"]
    assert found["spec"] == spec
    assert found["metadata"]["labels"] == {
        "use-gpu": "true",
        "statefulset": "first",
        "notebook-name": "first",
    }
    assert found["metadata"]["annotations"] == {"sidecar.istio.io/inject": "false"}
    assert of_kind(made, "Service")["spec"]["ports"][0]["targetPort"] == 8787
    assert resource == before, "what was read is never written to"


def test_no_group_where_none_is_wanted() -> None:
    assert "securityContext" not in template(notebook(), Options(fs_group=False))["spec"]


def test_no_way_through_istio_unless_asked() -> None:
    kinds = {child["kind"] for child in decide(notebook(), cluster_state(), Options()).children}
    assert kinds == {"Service", "NetworkPolicy", "StatefulSet"}


@pytest.mark.parametrize(
    ("annotations", "rewrite", "headers"),
    [
        ({}, "/notebook/me/first/", {}),
        ({REWRITE: "/"}, "/", {}),
        ({REWRITE: "", HEADERS: "no json"}, "/notebook/me/first/", {}),
        ({HEADERS: '{"X-Root": "/a/"}'}, "/notebook/me/first/", {"X-Root": "/a/"}),
        ({HEADERS: "[1]"}, "/notebook/me/first/", {}),
    ],
)
def test_the_way_through_istio(
    annotations: dict[str, str], rewrite: str, headers: dict[str, str]
) -> None:
    made = decide(notebook(annotations=annotations), cluster_state(), ISTIO).children
    found = of_kind(made, "VirtualService")
    assert found["apiVersion"] == "networking.istio.io/v1alpha3"
    assert found["metadata"]["name"] == "notebook-me-first"
    assert found["spec"] == {
        "hosts": ["*"],
        "gateways": ["kubeflow/kubeflow-gateway"],
        "http": [
            {
                "match": [{"uri": {"prefix": "/notebook/me/first/"}}],
                "rewrite": {"uri": rewrite},
                "headers": {"request": {"set": headers}},
                "route": [
                    {
                        "destination": {
                            "host": "first.me.svc.cluster.local",
                            "port": {"number": 80},
                        }
                    }
                ],
            }
        ],
    }


def test_stopped_has_no_pod_and_says_so() -> None:
    decision = decide(notebook(annotations={STOPPED: ""}), cluster_state(), Options())
    assert of_kind(decision.children, "StatefulSet")["spec"]["replicas"] == 0
    assert ready_of(decision.status)["reason"] == "Stopped"


def test_restart_takes_the_pod_and_then_the_annotation() -> None:
    resource = notebook(annotations={RESTART: "true"})
    decision = decide(resource, cluster_state(pods=[pod("first-0")]), Options())
    assert [found["metadata"]["name"] for found in decision.restart] == ["first-0"]
    assert decision.annotations == {RESTART: None}
    leaving = pod("first-0", metadata={"deletionTimestamp": "2026-03-01T12:00:00Z"})
    assert decide(resource, cluster_state(pods=[leaving]), Options()).restart == ()


@pytest.mark.parametrize("name", ["a.b", "1st", "x" * 53, "-a"])
def test_a_name_that_cannot_work_makes_nothing(name: str) -> None:
    decision = decide(notebook(name), cluster_state(), Options())
    assert decision.children == ()
    assert ready_of(decision.status)["reason"] == "InvalidName"


def test_nothing_is_done_to_what_is_another_s() -> None:
    other = notebook()
    other["metadata"]["uid"] = "somebody else"
    service = as_child(of_kind(decide(other, cluster_state(), Options()).children, "Service"))
    decision = decide(notebook(), cluster_state(service), Options())
    assert decision.children == ()
    found = ready_of(decision.status)
    assert (found["status"], found["reason"]) == ("False", "NameInUse")
    assert "Service first" in found["message"]


def test_the_policy_of_a_stateful_set_from_elsewhere_is_kept() -> None:
    made = of_kind(decide(notebook(), cluster_state(), Options()).children, "StatefulSet")
    assert made["spec"]["podManagementPolicy"] == "Parallel"
    old = {**made, "spec": {**made["spec"], "podManagementPolicy": "OrderedReady"}}
    again = of_kind(
        decide(notebook(), cluster_state(as_child(old)), Options()).children, "StatefulSet"
    )
    assert again["spec"]["podManagementPolicy"] == "OrderedReady"


@pytest.mark.parametrize(
    ("policy", "revision", "observed", "ready", "again"),
    [
        ("OrderedReady", "old", 2, "False", ["first-0"]),
        ("OrderedReady", "new", 2, "False", []),
        ("OrderedReady", "old", 1, "False", []),
        ("OrderedReady", "old", 2, "True", []),
        ("Parallel", "old", 2, "False", []),
    ],
)
def test_a_broken_pod_that_keeps_an_edit_waiting_is_made_again(
    policy: str, revision: str, observed: int, ready: str, again: list[str]
) -> None:
    made = of_kind(decide(notebook(), cluster_state(), Options()).children, "StatefulSet")
    made["spec"]["podManagementPolicy"] = policy
    made["metadata"]["generation"] = 2
    workload = as_child(made, updateRevision="new", observedGeneration=observed)
    found = pod(
        "first-0",
        metadata={"labels": {"controller-revision-hash": revision}},
        conditions=[{"type": "Ready", "status": ready}],
    )
    decision = decide(notebook(), cluster_state(workload, pods=[found]), Options())
    assert [each["metadata"]["name"] for each in decision.restart] == again


RUNNING = pod(
    "first-0",
    conditions=[
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-03-01T11:59:01Z",
            "observedGeneration": 1,
        },
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T11:59:05Z"},
    ],
    containerStatuses=[
        {"name": "sidecar", "state": {"waiting": {}}},
        {"name": "first", "ready": True, "state": {"running": {"startedAt": "x"}}},
    ],
)


def test_status_mirrors_the_pod() -> None:
    workload = of_kind(decide(notebook(), cluster_state(), Options()).children, "StatefulSet")
    status = decide(
        notebook(), cluster_state(as_child(workload, readyReplicas=1), pods=[RUNNING]), Options()
    ).status
    assert status["readyReplicas"] == 1
    assert status["containerState"] == {"running": {"startedAt": "x"}}
    assert [c["type"] for c in status["conditions"]] == ["PodScheduled", "Ready"]
    assert status["conditions"][0] == {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": "2026-03-01T11:59:01Z",
        "lastTransitionTime": "2026-03-01T11:59:01Z",
    }
    assert status["conditions"][1]["status"] == "True"


def test_status_comes_out_the_same_later() -> None:
    """No time of asking is in it: else each look would be a write, and each write a look."""
    first = decide(notebook(), cluster_state(pods=[RUNNING]), Options())
    later = cluster_state(pods=[RUNNING])
    later = type(later)(NOW.replace(hour=20), later.children, later.pods)
    assert decide({**notebook(), "status": first.status}, later, Options()).status == first.status
    nothing = decide(notebook(), cluster_state(), Options())
    later = type(later)(NOW.replace(hour=20))
    again = decide({**notebook(), "status": nothing.status}, later, Options())
    assert again.status == nothing.status


def test_a_quota_that_blocks_is_named() -> None:
    said = 'create Pod first-0 failed: pods "first-0" is forbidden: exceeded quota: small'
    workload = of_kind(decide(notebook(), cluster_state(), Options()).children, "StatefulSet")
    status = decide(
        notebook(),
        cluster_state(as_child(workload), events=[event("FailedCreate", said)]),
        Options(),
    ).status
    found = ready_of(status)
    assert found["reason"] == "QuotaExceeded"
    assert said in found["message"]


def test_the_digest_tells_what_is_wanted_apart() -> None:
    def digest(resource: Json) -> str:
        made = of_kind(decide(resource, cluster_state(), Options()).children, "StatefulSet")
        return str(made["metadata"]["annotations"][DIGEST])

    limited = notebook()
    limited["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    assert digest(notebook()) == digest(notebook())
    assert digest(limited) != digest(notebook())
    assert digest(notebook(labels={"a": "b"})) != digest(notebook())


@given(
    labels=st.dictionaries(st.sampled_from(["app", "statefulset", "x"]), st.text(max_size=3)),
    annotations=st.dictionaries(
        st.sampled_from([STOPPED, RESTART, REWRITE, HEADERS, "x"]), st.text(max_size=9)
    ),
)
def test_the_selector_always_finds_the_pod(
    labels: dict[str, str], annotations: dict[str, str]
) -> None:
    made = decide(notebook(labels=labels, annotations=annotations), cluster_state(), ISTIO).children
    spec = of_kind(made, "StatefulSet")["spec"]
    wanted = spec["selector"]["matchLabels"].items()
    assert wanted <= spec["template"]["metadata"]["labels"].items()
    assert wanted == of_kind(made, "Service")["spec"]["selector"].items()
