"""Schemas of Notebook, Tensorboard and PVCViewer, and their columns in `kubectl get`."""

from typing import Any

from lightkube.models import core_v1
from tools.custom_resources.kubernetes_types import (
    COUNT,
    INT_OR_STRING,
    STRING,
    TIME,
    condition,
    names,
    of_model,
    pod_spec,
)


def notebook() -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-validations": names(52),
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    "template": {"type": "object", "properties": {"spec": pod_spec()}},
                },
            },
            "status": {
                "type": "object",
                "required": ["conditions", "readyReplicas", "containerState"],
                "properties": {
                    "conditions": condition("type", "status", lastProbeTime=TIME),
                    "readyReplicas": COUNT,
                    "containerState": of_model(core_v1.ContainerState),
                },
            },
        },
    }


def tensorboard() -> dict[str, Any]:
    return {
        "type": "object",
        "x-kubernetes-validations": names(58),
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["logspath"],
                "properties": {"logspath": {"type": "string", "minLength": 1}},
            },
            "status": {
                "type": "object",
                "required": ["conditions", "readyReplicas"],
                "properties": {
                    "conditions": condition(
                        "deploymentState", deploymentState=STRING, lastProbeTime=TIME
                    ),
                    "readyReplicas": COUNT,
                },
            },
        },
    }


def viewer() -> dict[str, Any]:
    spec = pod_spec()
    # Rules are taken only where Kubernetes knows how long they can take at the most.
    volumes = spec["properties"]["volumes"]
    volumes["maxItems"] = 1000
    claim = volumes["items"]["properties"]["persistentVolumeClaim"]["properties"]["claimName"]
    claim["maxLength"] = 253
    return {
        "type": "object",
        "x-kubernetes-validations": names(53, digits_first=True),
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": ["pvc"],
                "properties": {
                    "pvc": {"type": "string", "minLength": 1, "maxLength": 253},
                    "rwoScheduling": {"type": "boolean", "default": True},
                    "podSpec": spec,
                    "networking": {
                        "type": "object",
                        "properties": {
                            "targetPort": INT_OR_STRING,
                            "basePrefix": STRING,
                            "rewrite": STRING,
                            "timeout": STRING,
                        },
                    },
                },
                "x-kubernetes-validations": [
                    {
                        "rule": "!has(self.podSpec) || (has(self.podSpec.volumes) &&"
                        " self.podSpec.volumes.exists(v, has(v.persistentVolumeClaim) &&"
                        " v.persistentVolumeClaim.claimName == self.pvc))",
                        "message": "a podSpec must have a volume of the claim that pvc names",
                    }
                ],
            },
            "status": {
                "type": "object",
                "required": ["ready"],
                "properties": {
                    "ready": {"type": "boolean", "default": False},
                    "url": STRING,
                    "conditions": condition("type", "status", lastUpdateTime=TIME),
                },
            },
        },
    }
