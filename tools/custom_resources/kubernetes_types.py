"""Schemas that several kinds share: of Pods (from the client's models), names and conditions."""

import types
import typing
from typing import Any, get_args, get_origin

import msgspec
from lightkube.models import core_v1, meta_v1

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
