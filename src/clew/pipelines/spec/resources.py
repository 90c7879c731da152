"""Parse the resources that a container requests."""

from typing import Any

from clew.kube.quantities import InvalidQuantity, parse_quantity
from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.ir import Resources
from clew.pipelines.spec.task_parser import parse_constant

_GB = 1e9
"""The unit of memory in the older fields, which are numbers."""


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
    requests = {"cpu": read("cpuRequest"), "memory": read("memoryRequest", _GB)}
    limits = {"cpu": read("cpuLimit"), "memory": read("memoryLimit", _GB)}
    return Resources(
        cpu=requests["cpu"] or limits["cpu"],
        memory=requests["memory"] or limits["memory"],
        accelerators=count if count is not None else (1 if kind else None),
        accelerator_type=kind,
        requests={name: value for name, value in requests.items() if value is not None},
        limits={name: value for name, value in limits.items() if value is not None},
    )


def _check_quantity(part: Part, name: str, value: Any) -> Any:
    """Check a quantity, unless it has placeholders, whose values are not known yet."""
    if "{{$" not in str(value):
        try:
            parse_quantity(value)
        except InvalidQuantity as error:
            raise part.error(name, str(error)) from error
    return value
