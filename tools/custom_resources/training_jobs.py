"""Schemas of TFJob and PyTorchJob.

The operator sets defaults and accepts the keys of replica types in any case, as upstream does, so
replicas are a map here. What could never run is refused with the path of the wrong field: a type
that does not exist, no container of the required name, a name from which no Service can be named.
"""

from typing import Any

from lightkube.models import autoscaling_v2, core_v1, meta_v1
from tools.custom_resources.kubernetes_types import (
    COUNT,
    INT_OR_STRING,
    NAME,
    QUANTITY,
    STRING,
    TIME,
    condition,
    of_model,
    pod_spec,
)

TFJOB_TYPES = ("PS", "Worker", "Chief", "Master", "Evaluator")
PYTORCHJOB_TYPES = ("Master", "Worker")
MANAGERS = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")

MOST_REPLICAS = 4096
"""As in `clew.kube.training.job_spec`, which also counts those of all types together."""

MOST_CONTAINERS = 1000
"""Kubernetes accepts a rule only if it knows how long the rule can take at the most."""


def natural(least: int = 0, *, digits: int = 32) -> dict[str, Any]:
    return {"type": "integer", "format": f"int{digits}", "minimum": least}


def one_of(*values: str) -> dict[str, Any]:
    """The empty string is the default."""
    return {"type": "string", "enum": ["", *values]}


def rule(text: str, message: str, **more: Any) -> dict[str, Any]:
    return {"rule": text, "message": message, **more}


def replicas(types: tuple[str, ...], container: str) -> dict[str, Any]:
    template = of_model(core_v1.PodTemplateSpec)
    template["required"] = ["spec"]
    template["properties"]["spec"] = pod = pod_spec()
    containers = pod["properties"]["containers"]
    containers["maxItems"] = MOST_CONTAINERS
    containers["items"]["properties"]["name"] = {**STRING, "maxLength": 63}
    containers["x-kubernetes-validations"] = [
        rule(
            f"self.exists(c, c.name == '{container}')",
            f"one of the containers must be named {container}: it is the one that trains",
        )
    ]
    names = ", ".join(f"'{name.lower()}'" for name in types)
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": len(types),
        "additionalProperties": {
            "type": "object",
            "required": ["template"],
            "properties": {
                "replicas": {**natural(), "maximum": MOST_REPLICAS},
                "restartPolicy": one_of("Always", "OnFailure", "Never", "ExitCode"),
                "template": template,
            },
        },
        "x-kubernetes-validations": [
            rule(
                f"self.all(type, type.lowerAscii() in [{names}])",
                f"the types of replicas are {', '.join(types)}",
            ),
            rule(
                "self.all(type, self.exists_one(t, t.lowerAscii() == type.lowerAscii()))",
                "a type of replicas is given twice",
            ),
        ],
    }


def run_policy() -> dict[str, Any]:
    queue = {**STRING, "maxLength": 253}
    queue["x-kubernetes-validations"] = [rule("self == oldSelf", "queue cannot be changed")]
    manager = {**STRING, "enum": list(MANAGERS)}
    manager["x-kubernetes-validations"] = [rule("self == oldSelf", "managedBy cannot be changed")]
    return {
        "type": "object",
        "properties": {
            "cleanPodPolicy": one_of("None", "Running", "All"),
            "ttlSecondsAfterFinished": natural(),
            "activeDeadlineSeconds": natural(digits=64),
            "backoffLimit": natural(),
            "suspend": {"type": "boolean"},
            "managedBy": manager,
            "schedulingPolicy": {
                "type": "object",
                "properties": {
                    "minAvailable": natural(),
                    "queue": queue,
                    "minResources": {"type": "object", "additionalProperties": QUANTITY},
                    "priorityClass": STRING,
                    "scheduleTimeoutSeconds": natural(),
                },
            },
        },
    }


def elastic_policy() -> dict[str, Any]:
    pair = {"type": "object", "properties": {"key": STRING, "value": STRING}}
    metric = of_model(autoscaling_v2.MetricSpec)
    return {
        "type": "object",
        "properties": {
            "minReplicas": natural(1),
            "maxReplicas": natural(1),
            "rdzvBackend": {**STRING, "enum": ["c10d", "etcd", "etcd-v2"]},
            "rdzvHost": STRING,
            "rdzvPort": natural(1),
            "rdzvId": STRING,
            "rdzvConf": {"type": "array", "items": pair},
            "standalone": {"type": "boolean"},
            "maxRestarts": natural(),
            "nProcPerNode": natural(1),
            "metrics": {"type": "array", "items": metric},
        },
        "x-kubernetes-validations": [
            rule(
                "!has(self.minReplicas) || !has(self.maxReplicas)"
                " || self.minReplicas <= self.maxReplicas",
                "minReplicas must not exceed maxReplicas",
            )
        ],
    }


def status() -> dict[str, Any]:
    replica = {
        "active": COUNT,
        "succeeded": COUNT,
        "failed": COUNT,
        "selector": STRING,
        "labelSelector": of_model(meta_v1.LabelSelector),
    }
    restart = {"replica": STRING, "count": COUNT, "pod": STRING}
    return {
        "type": "object",
        "properties": {
            "conditions": condition("type", "status", lastUpdateTime=TIME),
            "replicaStatuses": {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": replica},
            },
            "restarts": {
                "type": "array",
                "description": "How often each replica failed in Pods that were replaced, and the"
                " uid of the last of them.",
                "items": {"type": "object", "required": list(restart), "properties": restart},
            },
            "startTime": TIME,
            "completionTime": TIME,
            "lastReconcileTime": TIME,
        },
    }


def job(field: str, spec: dict[str, Any], rules: list[dict[str, Any]]) -> dict[str, Any]:
    """`field` has the replicas; their Services are named after the job, the type and the index."""
    fits = (
        f"self.spec.{field}.all(type, self.metadata.name.size() + type.size() + 2 +"
        f" (has(self.spec.{field}[type].replicas) && self.spec.{field}[type].replicas > 1 ?"
        f" string(self.spec.{field}[type].replicas - 1).size() : 1) <= 63)"
    )
    kept = "oldSelf.hasValue() || "
    return {
        "type": "object",
        "required": ["spec"],
        "x-kubernetes-validations": [
            rule(
                f"{kept}self.metadata.name.matches('{NAME}')",
                "the name must begin with a letter, and go on with small letters, digits and"
                " dashes: Services are named after it",
                optionalOldSelf=True,
            ),
            rule(
                f"{kept}{fits}",
                "the name is too long: with the type and the number of a replica it may have 63"
                " characters",
                optionalOldSelf=True,
            ),
        ],
        "properties": {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "required": [field],
                "properties": {"runPolicy": run_policy(), **spec},
                "x-kubernetes-validations": rules,
            },
            "status": status(),
        },
    }


def tfjob() -> dict[str, Any]:
    made = replicas(TFJOB_TYPES, "tensorflow")
    made["x-kubernetes-validations"].append(
        rule(
            "self.filter(type, type.lowerAscii() in ['chief', 'master']).size() <= 1",
            "Chief and Master are the same: give one of them",
        )
    )
    spec = {
        "tfReplicaSpecs": made,
        "successPolicy": one_of("AllWorkers"),
        "enableDynamicWorker": {"type": "boolean"},
    }
    return job("tfReplicaSpecs", spec, [])


def pytorchjob() -> dict[str, Any]:
    made = replicas(PYTORCHJOB_TYPES, "pytorch")
    made["x-kubernetes-validations"] += [
        rule(
            "self.all(type, type.lowerAscii() != 'master'"
            " || (has(self[type].replicas) && self[type].replicas == 1))",
            "Master.replicas must be 1",
        ),
        rule(
            "self.all(type, type.lowerAscii() != 'worker'"
            " || !has(self[type].replicas) || self[type].replicas >= 1)",
            "Worker.replicas must be 1 or more",
        ),
    ]
    spec = {
        "pytorchReplicaSpecs": made,
        "nprocPerNode": {**INT_OR_STRING, "pattern": "^(auto|cpu|gpu|[1-9][0-9]*)$"},
        "elasticPolicy": elastic_policy(),
    }
    elastic = rule(
        "!has(self.elasticPolicy)"
        " || self.pytorchReplicaSpecs.exists(type, type.lowerAscii() == 'worker')",
        "elasticPolicy needs Worker in pytorchReplicaSpecs",
    )
    return job("pytorchReplicaSpecs", spec, [elastic])
