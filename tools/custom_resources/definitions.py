"""The definitions, each with its names, versions, columns and schema."""

from typing import Any

import yaml
from tools.custom_resources.training_jobs import pytorchjob, tfjob
from tools.custom_resources.workbench import notebook, tensorboard, viewer


def column(name: str, path: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **more}


AGE = column("Age", ".metadata.creationTimestamp", "date")
REASON = column("Reason", '.status.conditions[?(@.type=="Ready")].reason')
READY = column("Ready", '.status.conditions[?(@.type=="Ready")].status')
STATE = column("State", ".status.conditions[-1:].type")
"""As upstream: the condition that changed last."""

WORKERS = {
    "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
    "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
}
"""What `kubectl scale` and an autoscaler change: the workers of an elastic job."""


def definition(
    group: str,
    kind: str,
    versions: tuple[str, ...],
    schema: dict[str, Any],
    columns: list[dict[str, Any]],
    short: list[str],
    **subresources: dict[str, Any],
) -> dict[str, Any]:
    """The first of the versions is the one that is stored. `subresources` besides the status."""
    plural = f"{kind.lower()}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": short,
                "categories": ["clew"],
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "subresources": {"status": {}, **subresources},
                    "additionalPrinterColumns": columns,
                    "schema": {"openAPIV3Schema": schema},
                }
                for version in versions
            ],
        },
    }


def definitions() -> list[dict[str, Any]]:
    image = column("Image", ".spec.template.spec.containers[0].image", priority=1)
    activity = column(
        "Last activity", r".metadata.annotations.notebooks\.kubeflow\.org/last-activity", priority=1
    )
    return [
        definition(
            "kubeflow.org",
            "Notebook",
            ("v1", "v1beta1", "v1alpha1"),
            notebook(),
            [READY, REASON, image, activity, AGE],
            ["nb"],
        ),
        definition(
            "tensorboard.kubeflow.org",
            "Tensorboard",
            ("v1alpha1",),
            tensorboard(),
            [READY, REASON, column("Logs", ".spec.logspath"), AGE],
            ["tb"],
        ),
        definition(
            "kubeflow.org",
            "PVCViewer",
            ("v1alpha1",),
            viewer(),
            [READY, REASON, column("Volume", ".spec.pvc"), column("URL", ".status.url"), AGE],
            ["viewer"],
        ),
        definition("kubeflow.org", "TFJob", ("v1",), tfjob(), [STATE, REASON, AGE], ["tfj"]),
        definition(
            "kubeflow.org",
            "PyTorchJob",
            ("v1",),
            pytorchjob(),
            [STATE, REASON, AGE],
            ["pyj"],
            scale=WORKERS,
        ),
    ]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Not every reader of manifests follows them."""
        return True


def documents() -> dict[str, str]:
    head = "# Written by tools/custom_resources; change that.\n"
    return {
        f"{crd['metadata']['name']}.yaml": head
        + yaml.dump(crd, Dumper=_Plain, sort_keys=False, width=110)
        for crd in definitions()
    }
