"""What becomes of a recorded Pod spec: a hostile one too."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.replay.pods import bucket_names
from clew.replay.pods.scratch_namespace import ScratchNamespace, secret_key
from clew.replay.pods.scratch_pod import ScratchPod, rewrite_pod

DIGEST = "sha256:" + "ab" * 32
TOKEN_VOLUME = {
    "name": "kube-api-access-x7k2p",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt"}},
        ]
    },
}
S3 = {"name": "s3", "key": "k"}
RATE = {"name": "settings", "key": "rate"}
RECORDED: dict[str, Any] = {
    "containers": [
        {
            "name": "main",
            "image": "registry.example:5000/ml/train:1",
            "command": ["python", "train.py"],
            "args": ["--data", "/data/a.csv", "--model", "s3://models/m.pkl"],
            "env": [
                {"name": "SEED", "value": "7"},
                {"name": "PASSWORD", "value": "***"},
                {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": S3}},
                {"name": "RATE", "valueFrom": {"configMapKeyRef": RATE}},
            ],
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "livenessProbe": {"httpGet": {"host": "10.0.0.1", "port": 80}},
            "volumeMounts": [
                {"name": "data", "mountPath": "/data", "mountPropagation": "Bidirectional"},
                {"name": "conf", "mountPath": "/etc/conf"},
                {"name": "kube-api-access-x7k2p", "mountPath": "/var/run/secrets/k"},
            ],
        },
        {"name": "clew-sidecar", "image": "docker.io/envoy:1"},
    ],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "conf", "configMap": {"name": "settings"}},
        TOKEN_VOLUME,
    ],
    "nodeName": "node-1",
    "nodeSelector": {"kubernetes.io/hostname": "node-1", "kubernetes.io/arch": "amd64"},
    "serviceAccountName": "admin",
    "priorityClassName": "system-node-critical",
    "restartPolicy": "Always",
    "tolerations": [{"operator": "Exists"}],
}  # fmt: skip


def around(**more: Any) -> ScratchNamespace:
    given: dict[str, Any] = {
        "name": "p1-train",
        "labels": {"clew.dev/reproduction": "r"},
        "deadline": 600,
        "images": {"main": DIGEST},
        "claims": {"shared": "v1"},
        "config_maps": {"settings": "settings-1"},
        "secret": "given",
        "given": frozenset({"PASSWORD", "AWS_SECRET_ACCESS_KEY"}),
        "buckets": {"models": "fresh"},
        **more,
    }
    return ScratchNamespace(**given)


def rewrite(spec: dict[str, Any], **more: Any) -> ScratchPod:
    return rewrite_pod(spec, around(**more), host="train-0")


def changed(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(RECORDED)), **changes}


def container(**changes: Any) -> dict[str, Any]:
    return changed(containers=[{"name": "main", "image": "a", **changes}])


def test_it_runs_what_was_recorded_on_fresh_volumes() -> None:
    made = rewrite(RECORDED)
    assert made.problems == made.missing_secrets == ()
    assert made.manifest["metadata"]["name"] == "p1-train"
    spec = made.manifest["spec"]
    (main,) = spec["containers"]
    assert main["image"] == f"registry.example:5000/ml/train@{DIGEST}"
    assert main["command"] == ("python", "train.py")
    assert main["args"] == ("--data", "/data/a.csv", "--model", "s3://fresh/m.pkl")
    assert {mount["name"] for mount in main["volumeMounts"]} == {"data", "conf"}
    assert main["env"][0] == {"name": "SEED", "value": "7"}
    assert main["env"][1]["valueFrom"]["secretKeyRef"] == {
        "name": "given",
        "key": secret_key("PASSWORD"),
    }
    assert main["env"][3]["valueFrom"]["configMapKeyRef"] == {"name": "settings-1", "key": "rate"}
    assert spec["volumes"] == (
        {"name": "data", "persistentVolumeClaim": {"claimName": "v1"}},
        {"name": "conf", "configMap": {"name": "settings-1"}},
    )
    assert spec["hostname"] == "train-0"
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] == 600
    assert spec["automountServiceAccountToken"] is False
    assert spec["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    for name in ("nodeName", "serviceAccountName", "priorityClassName", "tolerations"):
        assert name not in spec
    assert not {"ports", "livenessProbe"} & set(main)
    assert "mountPropagation" not in str(spec)
    assert "the container clew-sidecar, which was injected" in made.left_out


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (changed(hostNetwork=True), "it used the network of the node"),
        (changed(hostPID=True), "it used the processes of the node"),
        (changed(hostIPC=True), "it used the IPC of the node"),
        (changed(resourceClaims=[{"name": "gpu"}]), "it used devices by resource claims"),
        (changed(volumes=[{"name": "data", "hostPath": {"path": "/"}}]), "which is a hostPath"),
        (changed(volumes=[{"name": "data", "nfs": {"server": "x"}}]), "which is a nfs"),
        (changed(volumes=[{"name": "data", "csi": {"driver": "x"}}]), "which is a csi"),
        (container(securityContext={"privileged": True}), "main is privileged"),
        (container(securityContext={"procMount": "Unmasked"}), "sees /proc of the node"),
        (
            container(securityContext={"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}}),
            "has the capability SYS_ADMIN",
        ),
        (container(args=["--password=***"]), "a secret was masked in the arguments"),
        (changed(containers=[]), "its recorded spec is not valid"),
        (changed(containers="x"), "its recorded spec is not valid"),
        (changed(containers=[{"name": "clew-sidecar"}]), "no container of its own"),
        (container(env=[{"name": "A" * 200_000}]), "its recorded spec is not valid"),
    ],
)
def test_what_leads_to_the_host_is_refused(spec: dict[str, Any], problem: str) -> None:
    made = rewrite(spec)
    assert any(problem in one for one in made.problems), made.problems
    text = json.dumps(made.manifest)
    for name in ("hostPath", "hostNetwork", "hostPID", "hostIPC", "privileged", "nfs", "csi"):
        assert f'"{name}"' not in text


def test_an_image_without_a_digest_is_refused() -> None:
    assert rewrite(RECORDED, images={}).problems == (
        "the digest of the image of main is not recorded",
    )


def test_a_config_map_that_is_not_stored_is_refused_unless_optional() -> None:
    assert (
        "the data of the ConfigMap settings is not stored"
        in rewrite(RECORDED, config_maps={}).problems
    )
    volume = {"name": "data", "configMap": {"name": "none", "optional": True}}
    spec = container(volumeMounts=[{"name": "data", "mountPath": "/d"}]) | {"volumes": [volume]}
    assert rewrite(spec).problems == ()


def test_secrets_are_only_what_the_caller_gave() -> None:
    made = rewrite(RECORDED, given=frozenset())
    assert made.missing_secrets == ("PASSWORD", "AWS_SECRET_ACCESS_KEY")
    assert '"s3"' not in json.dumps(made.manifest)


@pytest.mark.parametrize("value", ["", "x", "***"])
@pytest.mark.parametrize("kind", ["secretKeyRef", "configMapKeyRef"])
def test_a_value_beside_a_reference_hides_no_reference(value: str, kind: str) -> None:
    """The API server accepts both if the value is empty, and then uses the reference."""
    source = {kind: {"name": "of-another", "key": "k", "optional": True}}
    made = rewrite(container(env=[{"name": "X", "value": value, "valueFrom": source}]))
    assert '"of-another"' not in json.dumps(made.manifest)


def test_files_of_a_secret_are_given_by_their_paths() -> None:
    spec = container(volumeMounts=[{"name": "keys", "mountPath": "/keys"}]) | {
        "volumes": [{"name": "keys", "secret": {"secretName": "of-another", "defaultMode": 0o400}}]
    }
    assert rewrite(spec).missing_secrets == ("/keys/FILE",)
    made = rewrite(spec, given=frozenset({"/keys/id", "/keys/../x"}))
    assert made.manifest["spec"]["volumes"][0]["secret"] == {
        "secretName": "given",
        "items": ({"key": secret_key("/keys/id"), "path": "id"},),
        "defaultMode": 0o400,
    }


def test_variables_of_a_whole_secret() -> None:
    spec = container(envFrom=[{"secretRef": {"name": "all"}}])
    assert rewrite(spec, given=frozenset()).missing_secrets == ("the variables of the Secret all",)
    env = rewrite(spec).manifest["spec"]["containers"][0]["env"]
    assert [one["name"] for one in env] == ["AWS_SECRET_ACCESS_KEY", "PASSWORD"]


def test_init_containers_share_the_deadline_and_cannot_restart() -> None:
    """The kubelet counts the deadline from the start of the Pod: one that never ends is ended."""
    before = {
        "name": "wait",
        "image": "a",
        "command": ["sleep", "inf"],
        "restartPolicy": "OnFailure",
    }
    made = rewrite(changed(initContainers=[before]), images={"main": DIGEST, "wait": DIGEST})
    (first,) = made.manifest["spec"]["initContainers"]
    assert "restartPolicy" not in first
    assert made.manifest["spec"]["activeDeadlineSeconds"] == 600


@pytest.mark.parametrize("name", ["x" * 64, "a.b", "-a", "A", "a/b"])
def test_a_name_that_is_no_host_name_is_left_out(name: str) -> None:
    assert "hostname" not in rewrite_pod(RECORDED, around(), host=name).manifest["spec"]


ALLOWED = {
    *("containers", "initContainers", "volumes", "securityContext", "hostname", "hostAliases"),
    *("nodeSelector", "shareProcessNamespace", "restartPolicy", "activeDeadlineSeconds"),
    *("terminationGracePeriodSeconds", "automountServiceAccountToken", "enableServiceLinks"),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*RECORDED, *ALLOWED, "hostPID", "hostUsers"]), JSON))
def test_no_spec_brings_a_field_that_is_not_allowed(spec: dict[str, Any]) -> None:
    made = rewrite({**RECORDED, **spec})
    assert made.problems or set(made.manifest["spec"]) <= ALLOWED


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("data", "new"),
        ("s3://data/a", "s3://new/a"),
        ("s3a://data", "s3a://new"),
        ("http://s3:9000/data/a", "http://s3:9000/new/a"),
        ("--bucket=data", "--bucket=new"),
        ('{"bucket": "data", "dir": "/data"}', '{"bucket": "new", "dir": "/data"}'),
        ("bucket_name: data\npath: data.csv", "bucket_name: new\npath: data.csv"),
        ("/data/a", "/data/a"),
        ("s3://data-2/a", "s3://data-2/a"),
        ("s3://other/data", "s3://other/data"),
    ],
)
def test_a_name_counts_where_it_names_a_bucket(text: str, result: str) -> None:
    assert bucket_names.replace(text, {"data": "new"}) == result
    assert bucket_names.contains(text, "data") == (text != result)
