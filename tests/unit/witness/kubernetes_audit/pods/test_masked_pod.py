"""No secret of a Pod's spec is in any event, wherever it stands; all else is."""

from typing import Any

import pytest
from tests.unit.witness.kubernetes_audit.audit_log import audit, fold, of, pod, running

from clew.prov.events import Started, to_lines
from clew.witness.kubernetes_audit.pods.masked_pod import MaskedPod

CANARY = "c4n4ry-0123456789"
PRESIGNED = f"https://s3.example.org/b/k?X-Amz-Credential=A&X-Amz-Signature={CANARY}&partNumber=2"


def text_of(**spec: Any) -> str:
    answers = [pod(**spec), pod(**spec, status=running())]
    found = fold(audit("create", "pods", answers[0]), audit("patch", "pods/status", answers[1]))
    return b"".join(to_lines(found.events)).decode()


@pytest.mark.parametrize(
    "container",
    [
        {"env": [{"name": "MYSQL_ROOT_PASSWORD", "value": CANARY}]},
        {"env": [{"name": "MYSQL_ROOT_PASSWORD", "value": CANARY}], "args": ["-c", f"x {CANARY}"]},
        {"command": ["mysql", f"-p{CANARY}"]},
        {"command": ["curl"], "args": ["-u", CANARY]},
        {"args": ["--password", CANARY]},
        {"args": ["wget", PRESIGNED]},
        {"env": [{"name": "URL", "value": PRESIGNED}]},
        {"env": [{"name": "DB", "value": f"postgres://me:{CANARY}@db/x"}]},
        {
            "livenessProbe": {
                "httpGet": {"httpHeaders": [{"name": "Authorization", "value": f"Bearer {CANARY}"}]}
            }
        },
        {
            "env": [{"name": "API_TOKEN", "value": CANARY}],
            "lifecycle": {"preStop": {"exec": {"command": ["curl", f"https://x/?t={CANARY}"]}}},
        },
    ],
)
def test_secret_is_nowhere(container: dict[str, Any]) -> None:
    assert CANARY not in text_of(container=container)


def test_secret_in_the_settings_of_a_driver() -> None:
    csi = {"driver": "smb", "volumeAttributes": {"source": "//host/share", "password": CANARY}}
    text = text_of(volumes=[{"name": "share", "csi": csi}])

    assert CANARY not in text
    assert "//host/share" in text


def test_what_is_no_secret_stays() -> None:
    container = {
        "command": ["python", "train.py"],
        "args": ["--rate", "0.1"],
        "env": [{"name": "RATE", "value": "0.1"}, {"name": "TOKEN", "value": CANARY}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    answer = pod(container=container, status=running())
    (started,) = of(fold(audit("patch", "pods/status", answer)), Started, kind="container")

    assert started.command == ("python", "train.py", "--rate", "0.1")
    assert started.environment == {"RATE": "0.1", "TOKEN": "***"}
    masked = MaskedPod(answer["spec"], ())
    assert masked.spec["containers"][0]["resources"] == container["resources"]
    assert masked.spec["containers"][0]["args"] == ["--rate", "0.1"]


def test_names_of_the_user_count() -> None:
    spec = {"containers": [{"name": "main", "env": [{"name": "CODE", "value": CANARY}]}]}

    assert MaskedPod(spec, ("CODE",)).environments == {"main": {"CODE": "***"}}


def test_long_and_odd_texts_are_made_storable() -> None:
    spec = {"containers": [{"name": "main", "args": ["x" * 300_000, "a\0b"], "env": ["odd"]}]}
    words = MaskedPod(spec, ()).commands["main"]

    assert len(words[0]) == 1 << 18
    assert words[1] == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": "x"},
        {"containers": [1, None, {"env": {"a": 1}, "args": "x"}]},
        {"volumes": [{"name": {"a": 1}, "configMap": []}], "containers": [{"volumeMounts": [7]}]},
    ],
)
def test_spec_of_another_shape_does_no_harm(spec: dict[str, Any]) -> None:
    answer = pod(status=running()) | {"spec": spec}

    assert of(fold(audit("patch", "pods/status", answer)), Started)
