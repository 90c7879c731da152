"""What becomes of a PVCViewer."""

from typing import Any

from tests.unit.kube.sample_resources import as_child, claim, cluster_state, of_kind, pod, viewer

from clew.kube.controller.options import Istio, Options
from clew.kube.objects import Json
from clew.kube.proxy_route import ProxyRoute, read_route
from clew.kube.resources.viewers import decide

OPTIONS = Options(istio=Istio(), viewer_image="clew:1")
OWN: Json = {
    "containers": [{"name": "main", "image": "browser:2", "ports": [{"containerPort": 80}]}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
    "affinity": {"podAffinity": {"x": 1}},
}


def pod_of(**spec: Any) -> Json:
    made = of_kind(decide(viewer(**spec), cluster_state(), OPTIONS).children, "Deployment")
    found: Json = made["spec"]["template"]["spec"]
    return found


def test_its_claim_is_enough() -> None:
    decision = decide(viewer(), cluster_state(), OPTIONS)
    names = {child["metadata"]["name"] for child in decision.children}
    assert names == {"pvcviewer-files", "clew-pvcviewer-files"}
    [port] = of_kind(decision.children, "Service")["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http", 80, 8080)
    [route] = of_kind(decision.children, "VirtualService")["spec"]["http"]
    assert route["match"] == [{"uri": {"prefix": "/pvcviewer/me/files/"}}]
    assert route["rewrite"] == {"uri": "/pvcviewer/me/files/"}
    assert decision.status["url"] == "/pvcviewer/me/files/"
    found = of_kind(decision.children, "Deployment")["spec"]["template"]["spec"]
    [container] = found["containers"]
    assert container["image"] == "clew:1"
    assert set(container["resources"]) == {"requests", "limits"}
    assert found["securityContext"]["fsGroup"] == 100
    assert found["volumes"] == [
        {"name": "viewer-volume", "persistentVolumeClaim": {"claimName": "data"}}
    ]


def test_a_prefix_of_several_parts_is_refused() -> None:
    """It would catch the requests for another's notebook."""
    for base in ("/notebook/victim/nb", "/files/..", "files", "//files"):
        decision = decide(viewer(networking={"basePrefix": base}), cluster_state(), OPTIONS)
        assert decision.children == ()
        assert "basePrefix" in str(decision.status)


def test_labels_are_upstream_s() -> None:
    made = of_kind(decide(viewer(), cluster_state(), OPTIONS).children, "Deployment")
    labels = {
        "app.kubernetes.io/name": "files",
        "app.kubernetes.io/instance": "pvcviewer-files",
        "app.kubernetes.io/part-of": "pvc-viewer",
    }
    assert made["spec"]["selector"]["matchLabels"] == labels
    assert labels.items() <= made["spec"]["template"]["metadata"]["labels"].items()
    assert made["spec"]["strategy"] == {"type": "Recreate"}


def test_a_pod_of_its_own_is_taken_as_it_is() -> None:
    assert pod_of(podSpec=OWN) == OWN


def test_networking_is_upstream_s() -> None:
    networking = {
        "targetPort": "web",
        "basePrefix": "/volumes",
        "rewrite": "/",
        "timeout": "30s",
    }
    decision = decide(viewer(podSpec=OWN, networking=networking), cluster_state(), OPTIONS)
    [route] = of_kind(decision.children, "VirtualService")["spec"]["http"]
    assert route["match"] == [{"uri": {"prefix": "/volumes/me/files/"}}]
    assert (route["rewrite"], route["timeout"]) == ({"uri": "/"}, "30s")
    assert decision.status["url"] == "/volumes/me/files/"
    assert read_route(of_kind(decision.children, "Service")) == ProxyRoute(
        "/", timeout=30.0, base="volumes"
    )
    [port] = of_kind(decision.children, "Service")["spec"]["ports"]
    assert port["targetPort"] == "web"


def test_a_pod_without_the_claim_makes_nothing() -> None:
    decision = decide(viewer("other", podSpec=OWN), cluster_state(), OPTIONS)
    assert decision.children == ()
    assert decision.status["conditions"][0]["reason"] == "InvalidSpec"


def test_the_configured_pod_gets_the_volume() -> None:
    configured = {"containers": [{"name": "c", "image": "i"}]}
    made = decide(viewer(), cluster_state(), Options(viewer_pod=configured)).children
    found = of_kind(made, "Deployment")["spec"]["template"]["spec"]
    assert found["containers"] == configured["containers"]
    assert found["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data"}
    assert "volumes" not in configured


def test_it_goes_to_its_volume_unless_told_not_to() -> None:
    around = cluster_state(
        claims=claim("data", "ReadWriteOnce"), holders={"data": [pod("first-0", "b", "data")]}
    )
    with_own = of_kind(decide(viewer(podSpec=OWN), around, OPTIONS).children, "Deployment")
    affinity = with_own["spec"]["template"]["spec"]["affinity"]
    assert set(affinity) == {"podAffinity", "nodeAffinity"}
    free = of_kind(decide(viewer(rwoScheduling=False), around, OPTIONS).children, "Deployment")
    assert "affinity" not in free["spec"]["template"]["spec"]


def test_status_tells_whether_it_is_ready() -> None:
    workload = of_kind(decide(viewer(), cluster_state(), OPTIONS).children, "Deployment")
    own = {"type": "Available", "status": "True", "lastUpdateTime": "t", "more": 1}
    running = pod("x", conditions=[{"type": "Ready", "status": "True"}])
    around = cluster_state(as_child(workload, conditions=[own]), pods=[running])
    status = decide(viewer(), around, OPTIONS).status
    assert status["ready"] is True
    assert [c["type"] for c in status["conditions"]] == ["Ready", "Available"]
    assert "more" not in status["conditions"][1], "the schema would take it away each time"
    assert decide(viewer(), cluster_state(), OPTIONS).status["ready"] is False
