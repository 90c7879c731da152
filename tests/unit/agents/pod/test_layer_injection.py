"""The file witness in a Pod: which containers it wraps, and which Pods cannot have it."""

from typing import Any

import pytest

from clew.agents.pod.file_sidecar_names import ANNOTATION, CONTAINER, DIRECTORY, SOCKET, WRAPPER
from clew.agents.pod.layer_injection import inject_layer
from clew.errors import NotAllowed

DEVICE = "example.org/fuse"
BASELINE = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
"""What Pod Security `baseline` lets a container add."""


def pod(*containers: dict[str, Any], witness: str = "sidecar", **spec: Any) -> dict[str, Any]:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "emptyDir": {}},
    ]
    about = {"name": "train", "namespace": "team", "annotations": {ANNOTATION: witness}}
    return {
        "metadata": about,
        "spec": {"containers": list(containers), "volumes": volumes, **spec},
    }


def container(name: str, *mounts: tuple[str, str], **more: Any) -> dict[str, Any]:
    found = [{"name": volume, "mountPath": point} for volume, point in mounts]
    return {"name": name, "command": ["python", "train.py"], "volumeMounts": found, **more}


def inject(found: dict[str, Any]) -> dict[str, Any]:
    changed = inject_layer(found, image="clew", device=DEVICE)
    assert changed is not None
    return changed


def test_a_container_with_a_claim_runs_its_command_below_a_layer() -> None:
    made = container("main", ("data", "/data/"), ("scratch", "/tmp"))
    made["resources"] = {"limits": {"memory": "1Gi"}}
    (main,) = inject(pod(made))["spec"]["containers"]
    assert main["command"] == [WRAPPER, SOCKET, "main", "/data", "--", "python", "train.py"]
    assert main["resources"]["limits"] == {"memory": "1Gi", DEVICE: "1"}
    assert main["resources"]["requests"] == {DEVICE: "1"}
    own = main["volumeMounts"][-1]
    assert (own["mountPath"], own["readOnly"]) == (DIRECTORY, True)


def test_a_container_without_a_claim_stays_as_it_is() -> None:
    others = [container("other", ("scratch", "/tmp")), {"name": "image"}]
    found = inject(pod(container("main", ("data", "/data")), *others))["spec"]["containers"]
    assert found[1:] == others


def test_a_volume_with_another_one_below_it_gets_no_layer() -> None:
    made = container("main", ("data", "/data"), ("scratch", "/data/tmp"), ("data", "/other"))
    (main,) = inject(pod(made))["spec"]["containers"]
    assert main["command"][3:5] == ["/other", "--"]


def test_the_sidecar_starts_first_with_what_baseline_permits() -> None:
    fetch = container("fetch", ("data", "/data"))
    found = inject(pod(container("main"), initContainers=[fetch]))["spec"]
    sidecar, wrapped = found["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == (CONTAINER, "Always")
    assert set(sidecar["securityContext"]["capabilities"]["add"]) <= BASELINE
    assert "privileged" not in sidecar["securityContext"]
    assert wrapped["command"][0] == WRAPPER
    assert not any("hostPath" in volume for volume in found["volumes"])


def test_a_second_injection_changes_nothing() -> None:
    once = inject(pod(container("main", ("data", "/data"))))
    assert inject(once) == once


def test_a_container_with_the_command_of_its_image_is_refused() -> None:
    made = container("main", ("data", "/data"))
    del made["command"]
    with pytest.raises(NotAllowed, match="main has the command of its image"):
        inject(pod(made))


def test_a_pod_without_claims_needs_no_witness() -> None:
    found = pod(container("main", ("scratch", "/tmp")))
    assert inject_layer(found, image="clew", device=DEVICE) is None


@pytest.mark.parametrize("witness", ["fuse", "fanotify", ""])
def test_a_pod_that_does_not_ask_stays_as_it_is(witness: str) -> None:
    assert inject_layer(pod(container("main"), witness=witness), image="", device="") is None
