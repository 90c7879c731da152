"""The webhook that adds the sidecar to Pods, for the tests of one file.

It is one for the whole cluster: tests that install it are in one xdist group, so one after another.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cluster.deployment import render
from tests.cluster.kube import Kube, pod
from tests.wait import wait_until

from clew.agents.sidecars.traffic_sidecar_names import CONTAINER, LABEL

INJECT = "clew-inject"
ONE_WEBHOOK = pytest.mark.xdist_group("sidecar")


@contextmanager
def install_webhook(cluster: Kube) -> Iterator[Kube]:
    """What `kubectl apply -k deploy/agents/inject` does; the Pods are not awaited."""
    cluster.wait_for(f"namespace/{INJECT}", "delete")
    found = render(cluster, "agents/inject")
    own = Kube(cluster.kubeconfig, INJECT)
    own.apply(*(each for each in found if each["kind"] == "Namespace"))
    try:
        own.apply(*(each for each in found if each["kind"] != "Namespace"))
        yield own
    finally:
        for kind in ("mutatingwebhookconfiguration", "clusterrole", "clusterrolebinding"):
            cluster("delete", kind, INJECT, "--ignore-not-found")
        cluster("delete", "namespace", INJECT, "--wait=false")


def wait_for_webhook(inject: Kube, kube: Kube) -> None:
    """Wait until a Pod in a selected namespace would have the sidecar."""
    inject.wait_for(f"deployment/{INJECT}", "condition=Available")
    asked = json.dumps(pod("asked", "true"))

    def has_sidecar() -> bool:
        made = kube("create", "--dry-run=server", "-o", "json", "-f", "-", given=asked)
        before = json.loads(made)["spec"].get("initContainers", ())
        return CONTAINER in [one["name"] for one in before]

    wait_until("the webhook is called", has_sidecar)


def select_namespace(kube: Kube) -> None:
    """Let Pods of this namespace have the sidecar."""
    kube("label", "namespace", kube.namespace, f"{LABEL}=true")
