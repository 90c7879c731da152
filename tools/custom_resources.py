"""Write deploy/crds: the custom resources as Kubernetes is told of them.

Their Pods may ask for whatever Kubernetes offers, so the schema of a Pod is taken from the models
of the client; what Kubeflow's own definitions demand is kept, and names that cannot work are
refused before anything is made of them. Run it after an upgrade of lightkube; a test holds it.
"""

import sys
import types
import typing
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import yaml
from lightkube.models import core_v1, meta_v1

CRDS = Path(__file__).parents[1] / "deploy" / "crds"

_DIGITS = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^(\+|-)?{_DIGITS}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_DIGITS}))?$",
    "x-kubernetes-int-or-string": True,
}
INT_OR_STRING: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
STRING = {"type": "string"}
TIME = {"type": "string", "format": "date-time"}
COUNT = {"type": "integer", "format": "int32"}
QUANTITIES = ("limits", "requests", "overhead")
"""Fields of numbers with units; every other map of the models holds plain text."""

NAME = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


def of_model(model: type[msgspec.Struct]) -> dict[str, Any]:
    """A model of the client as a schema."""
    if model is meta_v1.ObjectMeta:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = msgspec.structs.fields(model)
    written = model.__annotations__
    required = [f.encode_name for f in fields if f.required]
    return {
        "type": "object",
        **({"required": required} if required else {}),
        "properties": {
            f.encode_name: of_type(f.encode_name, f.type, str(written[f.name])) for f in fields
        },
    }


def of_type(name: str, found: Any, written: str) -> dict[str, Any]:
    """`written` is the type by its name in the models, which tells a quantity from other text."""
    for part, schema in {"Quantity": QUANTITY, "meta_v1.Time": TIME, "MicroTime": TIME}.items():
        if part in written:
            return schema
    members = [m for m in get_args(found) if m is not types.NoneType]
    if get_origin(found) is typing.Union:
        return INT_OR_STRING if set(members) == {int, str} else of_type(name, members[0], written)
    if get_origin(found) is list:
        return {"type": "array", "items": of_type(name, members[0], written)}
    if found is dict:
        values = QUANTITY if name in QUANTITIES else STRING
        return {"type": "object", "additionalProperties": values}
    if isinstance(found, type) and issubclass(found, msgspec.Struct):
        return of_model(found)
    plain = {str: STRING, bool: {"type": "boolean"}, int: {"type": "integer"}}
    return dict(plain[found])


def pod_spec() -> dict[str, Any]:
    """What a Pod may be, with a name and an image demanded of each container, and one container."""
    schema = of_model(core_v1.PodSpec)
    containers = schema["properties"]["containers"]
    containers["minItems"] = 1
    containers["items"]["required"] = ["name", "image"]
    return schema


def names(longest: int, *, digits_first: bool = False) -> list[dict[str, Any]]:
    """Refuse a name when it is new; what is there already can still be changed and deleted."""
    pattern = NAME.replace("[a-z](", "[a-z0-9](", 1) if digits_first else NAME
    first = "a letter or a digit" if digits_first else "a letter"
    return [
        {
            "rule": f"oldSelf.hasValue() || (self.metadata.name.size() <= {longest}"
            f" && self.metadata.name.matches('{pattern}'))",
            "optionalOldSelf": True,
            "message": f"the name must begin with {first}, go on with small letters, digits and"
            f" dashes, and be at most {longest} long: a Service is named after it",
        }
    ]


def condition(*required: str, **more: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {
            "type": "object",
            "required": list(required),
            "properties": {
                "type": STRING,
                "status": STRING,
                "reason": STRING,
                "message": STRING,
                "lastTransitionTime": TIME,
                **more,
            },
        },
    }


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


def column(name: str, path: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **more}


AGE = column("Age", ".metadata.creationTimestamp", "date")
REASON = column("Reason", '.status.conditions[?(@.type=="Ready")].reason')
READY = column("Ready", '.status.conditions[?(@.type=="Ready")].status')


def definition(
    group: str,
    kind: str,
    versions: tuple[str, ...],
    schema: dict[str, Any],
    columns: list[dict[str, Any]],
    short: list[str],
) -> dict[str, Any]:
    """The first of the versions is the one that is stored."""
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
                    "subresources": {"status": {}},
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
    ]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Not every reader of manifests follows them."""
        return True


def documents() -> dict[str, str]:
    head = "# Written by tools/custom_resources.py; change that.\n"
    return {
        f"{crd['metadata']['name']}.yaml": head
        + yaml.dump(crd, Dumper=_Plain, sort_keys=False, width=110)
        for crd in definitions()
    }


def main() -> int:
    CRDS.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (CRDS / name).write_text(text)
        print(CRDS / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
