"""Parse the resources that a container requests, and Kubernetes quantities."""

import re
from typing import Any

from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.ir import Resources
from clew.pipelines.spec.task_parser import parse_constant

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d+|[a-zA-Z]*)")
_SUFFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "P": 1e15, "E": 1e18, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
    "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_GB = 1e9
"""The unit of memory in the older fields, which are numbers."""


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""


def parse_resources(part: Part) -> Resources:
    """Parse the `resources` of a container. The newer text fields win over the older numbers."""
    part.allow_only(
        "cpuLimit", "memoryLimit", "cpuRequest", "memoryRequest", "accelerator",
        "resourceCpuLimit", "resourceMemoryLimit", "resourceCpuRequest", "resourceMemoryRequest",
    )  # fmt: skip
    accelerator = part.part("accelerator")
    accelerator.allow_only("type", "count", "resourceType", "resourceCount")

    def read(name: str, unit: float = 1.0) -> Any:
        newer_name = f"resource{name[0].upper()}{name[1:]}"
        newer = parse_constant(part, newer_name)
        if newer not in (None, ""):
            return _check_quantity(part, newer_name, newer)
        older = parse_constant(part, name)
        return None if not older else float(_check_quantity(part, name, older)) * unit

    count = parse_constant(accelerator, "resourceCount") or parse_constant(accelerator, "count")
    kind = parse_constant(accelerator, "resourceType") or parse_constant(accelerator, "type")
    if count is not None:
        _check_quantity(accelerator, "count", count)
    return Resources(
        cpu=read("cpuRequest") or read("cpuLimit"),
        memory=read("memoryRequest", _GB) or read("memoryLimit", _GB),
        accelerators=count if count is not None else (1 if kind else None),
    )


def _check_quantity(part: Part, name: str, value: Any) -> Any:
    """Check a quantity, unless it has placeholders, whose values are not known yet."""
    if "{{$" not in str(value):
        try:
            parse_quantity(value)
        except InvalidQuantity as error:
            raise part.error(name, str(error)) from error
    return value


def parse_quantity(value: Any) -> float:
    """`500m`, `2Gi`, `1e3`, `4` as a number."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is not None and match[2] in _SUFFIXES:
        return float(match[1]) * _SUFFIXES[match[2]]
    if match is None or not match[2][-1].isdigit():
        raise InvalidQuantity(f"{value!r} is not a quantity like 500m or 2Gi")
    return float(match[0])
