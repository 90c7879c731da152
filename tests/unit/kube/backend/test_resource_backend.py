"""What the back end of a cluster decides without asking the cluster."""

import pytest

from clew.errors import NotFound
from clew.kube.backend.resource_backend import claims_of, gpu_names, pod_labels
from clew.kube.backend.rest_client import resource_path
from clew.kube.backend.version_watch import read_event
from clew.kube.objects import Key


def test_paths() -> None:
    assert resource_path("Pod", "a", "b") == "/api/v1/namespaces/a/pods/b"
    assert resource_path("Notebook", "a") == "/apis/kubeflow.org/v1/namespaces/a/notebooks"
    assert resource_path("Notebook") == "/apis/kubeflow.org/v1/notebooks"
    assert resource_path("StorageClass") == "/apis/storage.k8s.io/v1/storageclasses"


@pytest.mark.parametrize(
    "name", ["..", "a/b", "a?b", "", "A", "a%2fb", "a\n", "é", "-a", "a" * 254]
)
def test_a_name_cannot_lead_elsewhere(name: str) -> None:
    with pytest.raises(NotFound):
        resource_path("Pod", "a", name)
    with pytest.raises(NotFound):
        resource_path("Pod", name, "a")


def test_gpus_of_nodes() -> None:
    nodes = [
        {"status": {"allocatable": {"cpu": "2", "nvidia.com/gpu": "4", "amd.com/gpu": "0"}}},
        {"status": {"allocatable": {"habana.ai/gaudi": "8", "hugepages-2Mi": "0"}}},
        {"status": {}},
    ]
    assert gpu_names(nodes) == ("habana.ai/gaudi", "nvidia.com/gpu")


def test_pods_are_found_by_the_labels_of_the_operator() -> None:
    assert pod_labels(Key("Notebook", "a", "b"))[1] == ("StatefulSet", "b")
    assert pod_labels(Key("Tensorboard", "a", "b")) == ({"app": "b"}, ("Deployment", "b"))
    assert pod_labels(Key("PVCViewer", "a", "b"))[1] == ("Deployment", "pvcviewer-b")


def test_claims_of_a_pod() -> None:
    volumes = [{"name": "x", "persistentVolumeClaim": {"claimName": "home"}}, {"emptyDir": {}}]
    assert claims_of({"spec": {"volumes": volumes}}) == {"home"}
    assert claims_of({"spec": {}}) == set()


def test_events_of_a_watch() -> None:
    metadata = {"metadata": {"resourceVersion": "12"}}
    assert read_event({"type": "MODIFIED", "object": metadata}) == ("12", 12)
    assert read_event({"type": "DELETED", "object": metadata}) == ("12", 12)
    assert read_event({"type": "BOOKMARK", "object": metadata}) == ("12", 0)
    assert read_event({"type": "ERROR", "object": {"code": 410}}) == ("", 0)
