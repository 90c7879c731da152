"""Use the cluster under test through kubectl."""

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tools.cluster.binaries import search_path
from tools.cluster.images import BUSYBOX

import clew

CLEW = f"docker.io/clew/clew:{clew.__version__}"
PATIENCE = "180s"


@dataclass(frozen=True)
class Kube:
    kubeconfig: str
    namespace: str = "default"

    def __call__(self, *words: str, given: str = "", ok: bool = True) -> str:
        """What kubectl prints; with `ok=False` it may fail."""
        ran = subprocess.run(
            ["kubectl", "--namespace", self.namespace, *words],
            env={
                "PATH": f"{search_path()}:{os.environ['PATH']}",
                "KUBECONFIG": self.kubeconfig,
                "HOME": os.environ.get("HOME", "/"),
            },
            input=given,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0 or not ok, f"kubectl {' '.join(words)}: {ran.stderr}"
        return ran.stdout

    def get(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("get", *words, "--output", "json"))
        return found

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self("apply", "--filename", "-", given=json.dumps(listed))

    def wait_for(self, what: str, state: str, *options: str) -> str:
        """Wait for a state as `kubectl wait --for` does; describe the resource on failure."""
        try:
            return self("wait", what, f"--for={state}", f"--timeout={PATIENCE}", *options)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self('describe', what, ok=False)}") from None

    def run(self, pod: dict[str, Any]) -> str:
        """Run a Pod to its end, and return what it printed."""
        self.apply(pod)
        name = f"pod/{pod['metadata']['name']}"
        self.wait_for(name, "jsonpath={.status.phase}=Succeeded")
        return self("logs", name)


def pod(name: str, *command: str, on: str | None = None, **more: Any) -> dict[str, Any]:
    """A Pod of one small container; `on` names its node, `volume` a claim that it has at /data."""
    image, volume = more.pop("image", BUSYBOX), more.pop("volume", None)
    container: dict[str, Any] = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command else {}),
        **more,
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    if on is not None:
        spec["nodeSelector"] = {"kubernetes.io/hostname": on}
    if volume is not None:
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]
    about = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
