"""The back end of the web app on a real cluster, with no rights but those of deploy/server."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.deployment import act_as_service_account, render
from tests.cluster.kube import Kube, pod
from tests.cluster.operator import claim, notebook, operator  # noqa: F401 - operator is a fixture
from tests.cluster.test_viewers import viewer
from tests.wait import wait_until

from clew.documents.workloads.workload import Culling
from clew.errors import Conflict, Exists, NotAllowed, NotFound, UsageError
from clew.kube.backend.resource_backend import ResourceBackend
from clew.kube.objects import Json, Key, condition_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

MISSING_IMAGE = "registry.invalid/none:1"
PRINTS = "echo begun; mkdir -p /tmp/www; (sleep 2; echo later) & exec httpd -f -p 8888 -h /tmp/www"


@pytest.fixture(scope="module")
def space(cluster: Kube, spaces: str) -> Iterator[Kube]:
    """One namespace for all tests of this file."""
    name = f"{spaces}-shared"
    cluster("create", "namespace", name)
    yield Kube(cluster.kubeconfig, name)
    cluster("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def account(space: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """The cluster as the server sees it."""
    folder = tmp_path_factory.mktemp("account")
    rules = render(space)
    with act_as_service_account(space, rules, "clew-server", folder, everywhere=True) as made:
        yield made


def connect(account: Kube, *namespaces: str) -> ResourceBackend:
    culling = Culling(enabled=False, idle_minutes=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", account.kubeconfig)
        return ResourceBackend(user="me", culling=culling, namespaces=namespaces)


@pytest.fixture(scope="module")
def backend(account: Kube) -> Iterator[ResourceBackend]:
    made = connect(account)
    yield made
    made.close()


def in_space(space: Kube, made: dict[str, Any]) -> Json:
    return {**made, "metadata": {**made["metadata"], "namespace": space.namespace}}


def test_a_resource_is_created_changed_and_deleted(space: Kube, backend: ResourceBackend) -> None:
    made = in_space(space, notebook("life", labels={"team": "a"}))
    key = Key("Notebook", space.namespace, "life")
    assert backend.create(made, dry_run=True)["metadata"]["name"] == "life"
    with pytest.raises(NotFound, match="there is no notebook life"):
        backend.get(key)
    created = backend.create(made)
    assert "managedFields" not in created["metadata"]
    with pytest.raises(Exists, match="there is already a notebook life"):
        backend.create(made)
    for labels, found in (({"team": "a"}, ["life"]), ({"team": "b"}, [])):
        listed = backend.list("Notebook", space.namespace, labels=labels)
        assert [each["metadata"]["name"] for each in listed] == found
        assert all(each["kind"] == "Notebook" for each in listed)

    patched = backend.merge_patch(key, {"metadata": {"annotations": {"x": "1", "y": "2"}}})
    assert patched["metadata"]["annotations"]["x"] == "1"
    patched = backend.merge_patch(key, {"metadata": {"annotations": {"x": None}}})
    assert "x" not in patched["metadata"]["annotations"]
    with pytest.raises(Conflict, match="was changed meanwhile"):
        backend.replace(created)
    wait_until(
        "it is ready", lambda: condition_of(backend.get(key), "Ready").get("status") == "True"
    )
    current = backend.get(key)
    current["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 2
    backend.replace(current)
    misspelt = backend.get(key)
    misspelt["spec"]["template"]["spec"]["containrs"] = []
    with pytest.raises(UsageError, match="containrs"):
        backend.replace(misspelt)

    backend.delete(key)
    wait_until("it is gone", lambda: not backend.list("Notebook", space.namespace))
    with pytest.raises(NotFound):
        backend.delete(key)


def test_refusals_say_why(kube: Kube, backend: ResourceBackend) -> None:
    kube("create", "quota", "small", "--hard=requests.storage=15Mi")
    backend.create(in_space(kube, claim("fits")))
    with pytest.raises(NotAllowed, match="the quota of this namespace leaves no room"):
        wait_until("the quota counts", lambda: backend.create(in_space(kube, claim("more"))) and 0)
    with pytest.raises(UsageError, match="not valid"):
        backend.create(in_space(kube, notebook("Not.Valid")))
    with pytest.raises(NotFound, match="there is no namespace absent"):
        backend.create({**claim("x"), "metadata": {"name": "x", "namespace": "absent"}})
    with pytest.raises(NotAllowed, match="cannot be used here"):
        backend.create({**notebook(), "metadata": {"name": "x", "namespace": "kube-system"}})
    with pytest.raises(NotAllowed, match="cannot be used here"):
        backend.list("Pod", "kube-system")
    assert backend.list("PodDefault", kube.namespace) == []
    assert backend.list("VolumeSnapshot", kube.namespace) == []


def test_a_change_changes_the_version(kube: Kube, account: Kube) -> None:
    """Only changes in the namespaces that it uses."""
    key = Key("PersistentVolumeClaim", kube.namespace, "watched")
    backend = connect(account, kube.namespace)
    seen = backend.version()
    assert backend.version() == seen

    def changed() -> bool:
        nonlocal seen
        before, seen = seen, backend.version()
        assert seen >= before
        return seen > before

    backend.create(in_space(kube, claim("watched")))
    wait_until("it counts that there is a volume", changed)
    wait_until("it has an event", lambda: about(backend, key))
    wait_until("its event counts", changed)
    backend.delete(key)
    wait_until("its deletion counts", changed)
    backend.close()


def about(backend: ResourceBackend, key: Key) -> list[str]:
    events = backend.list("Event", key.namespace)
    return [each["reason"] for each in events if each["involvedObject"]["name"] == key.name]


def test_logs_of_each_container(space: Kube, backend: ResourceBackend) -> None:
    backend.create(in_space(space, notebook("prints", "sh", "-c", PRINTS)))
    key = Key("Notebook", space.namespace, "prints")
    [found] = wait_until("it has a Pod", lambda: backend.pods_of(key))
    name = found["metadata"]["name"]

    async def follow() -> bytes:
        text = b""
        async for chunk, _ in backend.follow_log(space.namespace, name, "prints"):
            text += chunk
            if b"later" in text:
                break
        return text

    assert asyncio.run(asyncio.wait_for(follow(), 180)) == b"begun\nlater\n"
    assert backend.read_log(space.namespace, name, "prints") == "begun\nlater\n"
    assert backend.read_log(space.namespace, name, "prints", tail=1) == "later\n"
    with pytest.raises(UsageError, match="other"):
        backend.read_log(space.namespace, name, "other")
    with pytest.raises(NotFound, match="there is no Pod absent"):
        backend.read_log(space.namespace, "absent", "prints")


def test_a_container_that_cannot_start_has_an_empty_log(
    space: Kube, backend: ResourceBackend
) -> None:
    backend.create(in_space(space, notebook("absent", container={"image": MISSING_IMAGE})))
    key = Key("Notebook", space.namespace, "absent")
    [found] = wait_until("it has a Pod", lambda: backend.pods_of(key))
    name = found["metadata"]["name"]
    assert backend.read_log(space.namespace, name, "absent") == ""
    reason = wait_until(
        "its condition says so",
        lambda: (
            condition_of(found := backend.get(key), "Ready").get("reason") == "ImageNotPulled"
            and condition_of(found, "Ready")["message"]
        ),
    )
    assert MISSING_IMAGE in reason


def test_pods_of_a_volume_and_of_its_viewer(space: Kube, backend: ResourceBackend) -> None:
    space.apply(claim("shared"), pod("reads", "sleep", "3600", volume="shared"), viewer("shared"))
    own = pod("impostor", "sleep", "3600")
    own["metadata"]["labels"] = {"app.kubernetes.io/instance": "pvcviewer-files"}
    space.apply(own)
    volume = Key("PersistentVolumeClaim", space.namespace, "shared")
    wait_until("both use it", lambda: len(backend.pods_of(volume)) == 2)
    [found] = backend.pods_of(Key("PVCViewer", space.namespace, "files"))
    assert found["metadata"]["name"].startswith("pvcviewer-files-")


def test_features_and_namespaces(space: Kube, backend: ResourceBackend) -> None:
    features = backend.features()
    assert (features.notebooks, features.tensorboards, features.volumes) == (True, True, True)
    assert (features.snapshots, features.gpus) == (False, ())
    assert [each.default for each in backend.storage_classes()] == [True]
    assert {space.namespace, "default"} <= set(backend.namespaces())
    assert not {"kube-system", "kube-public"} & set(backend.namespaces())


WRITES = {"get", "list", "watch", "create", "update", "patch", "delete"}
RIGHTS: dict[str, set[str]] = {
    "services": {"get"},
    "kubeflow.org/notebooks": WRITES,
    "kubeflow.org/pvcviewers": WRITES,
    "tensorboard.kubeflow.org/tensorboards": WRITES,
    "persistentvolumeclaims": WRITES,
    "kubeflow.org/poddefaults": {"get", "list", "watch"},
    "snapshot.storage.k8s.io/volumesnapshots": {"get", "list"},
    "storage.k8s.io/storageclasses": {"list"},
    "namespaces": {"list"},
    "nodes": {"list"},
    "pods": {"get", "list", "watch", "create", "delete"},  # the tasks of pipelines
    "pods/log": {"get"},
    "events": {"list", "watch"},
    "resourcequotas": {"list"},
    "secrets:clew-server": {"get", "update"},
    "secrets:clew-access": {"get", "update"},
    "authorization.k8s.io/subjectaccessreviews": {"create"},
}


def test_the_server_may_do_nothing_else(account: Kube) -> None:
    """What every account may ask about itself does not count."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": account.namespace},
    }
    given = account(
        "create", "--filename=-", "--validate=false", "--output=json", given=json.dumps(review)
    )
    found: dict[str, set[str]] = {}
    for rule in json.loads(given)["status"]["resourceRules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames") or [""]:
                    what = f"{group}/{resource}".lstrip("/") + (f":{name}" if name else "")
                    found.setdefault(what, set()).update(rule["verbs"])
    others = {what for what in found if "selfsubject" in what}
    assert {what: verbs for what, verbs in found.items() if what not in others} == RIGHTS


def test_kubernetes_decides_who_may_read_a_namespace(space: Kube, backend: ResourceBackend) -> None:
    space("create", "role", "reader", "--verb=list", "--resource=pods")
    space("create", "rolebinding", "ann", "--role=reader", "--user=ann")
    space("create", "rolebinding", "readers", "--role=reader", "--group=readers")
    for who in ("--as=ann", "--as=bob --as-group=readers"):
        asked = ("auth", "can-i", "list", "pods", *who.split())
        wait_until("the role counts", lambda asked=asked: space(*asked, ok=False).strip() == "yes")
    for user, groups, may in (
        ("ann", (), True),
        ("bob", ("readers",), True),
        ("bob", (), False),
        (None, (), True),  # the server's own account
    ):
        assert backend.may_read(space.namespace, user=user, groups=groups) == may, (user, groups)
    assert not backend.may_read("default", user="ann", groups=())
