"""Whether a task fits beside those that run: decided from plain numbers, without any IO.

What a task asks for is what it requests; where it requests nothing, its limit, as on a cluster. It
begins when that is free. One that asks for more than there is can never fit, and is let run alone.
Later ones that fit may overtake one that does not, but only so often: then nothing begins until
enough has ended for it, so that nobody waits for ever.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.ir import Resources
from clew.pipelines.spec.task_parser import parse_constant

MAX_OVERTAKES = 16
"""How often others may begin before the one that has waited longest."""
MIN_CORES = 0.1
"""Cores that any task counts for: one that asks for none takes some all the same."""

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))([eE][+-]?\d+|[a-zA-Z]*)")
_SUFFIXES = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "P": 1e15, "E": 1e18, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40,
    "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
_GB = 1e9
"""The unit of memory in the fields that came first."""

Item = TypeVar("Item")


class InvalidQuantity(ValueError):
    """What is asked for is no number that Kubernetes would understand."""


def parse_resources(part: Part) -> Resources:
    """The `resources` of a container. A text is newer than the number beside it, and wins."""
    part.only(
        "cpuLimit", "memoryLimit", "cpuRequest", "memoryRequest", "accelerator",
        "resourceCpuLimit", "resourceMemoryLimit", "resourceCpuRequest", "resourceMemoryRequest",
    )  # fmt: skip
    accelerator = part.part("accelerator")
    accelerator.only("type", "count", "resourceType", "resourceCount")

    def asked(name: str, unit: float = 1.0) -> Any:
        newer = parse_constant(part, f"resource{name[0].upper()}{name[1:]}")
        if newer not in (None, ""):
            return _check_quantity(part, f"resource{name[0].upper()}{name[1:]}", newer)
        older = parse_constant(part, name)
        return None if not older else float(_check_quantity(part, name, older)) * unit

    count = parse_constant(accelerator, "resourceCount") or parse_constant(accelerator, "count")
    kind = parse_constant(accelerator, "resourceType") or parse_constant(accelerator, "type")
    if count is not None:
        _check_quantity(accelerator, "count", count)
    return Resources(
        cpu=asked("cpuRequest") or asked("cpuLimit"),
        memory=asked("memoryRequest", _GB) or asked("memoryLimit", _GB),
        accelerators=count if count is not None else (1 if kind else None),
    )


def _check_quantity(part: Part, name: str, value: Any) -> Any:
    """`value`, which is a quantity or may become one when the task's inputs are known."""
    if "{{$" not in str(value):
        try:
            parse_quantity(value)
        except InvalidQuantity as error:
            raise part.refused(name, str(error)) from error
    return value


def parse_quantity(value: Any) -> float:
    """`500m`, `2Gi`, `1e3`, `4` as a number."""
    found = _QUANTITY.fullmatch(str(value).strip())
    if found is None:
        raise InvalidQuantity(f"{value!r} is no quantity like 500m or 2Gi")
    if found[2] in _SUFFIXES:
        return float(found[1]) * _SUFFIXES[found[2]]
    if not found[2][-1].isdigit():
        raise InvalidQuantity(f"{value!r} is no quantity like 500m or 2Gi")
    return float(found[0])


class Capacity(Struct, frozen=True):
    """What a machine has, and how many tasks may run on it at once."""

    cores: float
    memory: float
    gpus: int = 0
    tasks: int | None = None

    @property
    def most(self) -> int:
        """More tasks than that never run at once."""
        return self.tasks or int(self.cores / MIN_CORES) + 1


class ResourceRequest(Struct, frozen=True):
    """What a task takes while it runs."""

    cores: float = 1.0
    memory: float = 0.0
    gpus: float = 0.0
    alone: bool = False
    places: frozenset[tuple[str, str]] = frozenset()
    """Paths that must lead somewhere, each with where, as long as it runs."""


def resolve_request(resources: Resources, fill: Callable[[Any], Any]) -> ResourceRequest:
    """What a task takes, when its placeholders have values (`fill`)."""

    def number(value: Any, default: float) -> float:
        return default if value is None else max(0.0, parse_quantity(fill(value)))

    return ResourceRequest(
        cores=max(MIN_CORES, number(resources.cpu, 1.0)),
        memory=number(resources.memory, 0.0),
        gpus=number(resources.accelerators, 0.0),
    )


def describe_shortage(wanted: ResourceRequest, room: Capacity) -> str | None:
    """What the machine has too little of, however long one waits; None: it can fit."""
    lacks = []
    if wanted.cores > room.cores:
        lacks.append(f"{wanted.cores:g} cores of {room.cores:g}")
    if wanted.memory > room.memory:
        lacks.append(f"{wanted.memory / 2**30:.3g} GiB of memory of {room.memory / 2**30:.3g}")
    if wanted.gpus > room.gpus:
        lacks.append(f"{wanted.gpus:g} accelerators of {room.gpus}")
    return ", ".join(lacks) or None


def fits(wanted: ResourceRequest, busy: Iterable[ResourceRequest], room: Capacity) -> bool:
    """Whether it can begin beside those that run."""
    beside = list(busy)
    if wanted.alone or any(one.alone for one in beside):
        return not beside
    if room.tasks is not None and len(beside) >= room.tasks:
        return False
    held = {path: target for one in beside for path, target in one.places}
    if any(held.get(path, target) != target for path, target in wanted.places):
        return False
    slack = 1e-9  # tenths do not add up to ones
    return (
        sum(one.cores for one in beside) + wanted.cores <= room.cores + slack
        and sum(one.memory for one in beside) + wanted.memory <= room.memory
        and sum(one.gpus for one in beside) + wanted.gpus <= room.gpus
    )


class ResourceQueue(Generic[Item]):
    """Those that could begin, if there were room; those that take the same stand in one line."""

    def __init__(self, room: Capacity) -> None:
        self.room = room
        self._lines: dict[ResourceRequest, deque[tuple[int, Item]]] = {}
        self._count = 0
        self._overtaken = 0

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, item: Item, wanted: ResourceRequest) -> None:
        self._count += 1
        self._lines.setdefault(wanted, deque()).append((self._count, item))

    def next(self, busy: Iterable[ResourceRequest]) -> tuple[Item, ResourceRequest] | None:
        """The one that begins now, if any can."""
        beside = list(busy)
        by_age = sorted(self._lines, key=lambda wanted: self._lines[wanted][0][0])
        for place, wanted in enumerate(by_age):
            if place and self._overtaken >= MAX_OVERTAKES:
                return None
            if fits(wanted, beside, self.room):
                self._overtaken = self._overtaken + 1 if place else 0
                line = self._lines[wanted]
                _, item = line.popleft()
                if not line:
                    del self._lines[wanted]
                return item, wanted
        return None
