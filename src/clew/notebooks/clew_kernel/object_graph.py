"""What can be reached from a variable: the objects that code could change through it.

Two variables that reach the same object must be saved together, and a change made through one is a
change of the other. The walk uses the references that the garbage collector knows, so it also sees
what generators, closures and C types hold. It ends at modules, at what modules define, and at
values that cannot change.
"""

import datetime
import decimal
import enum
import fractions
import gc
import pathlib
import re
import sys
import types
from typing import Any

from clew_kernel.code_names import find_code_names

_CONSTANTS = frozenset(
    {
        *(int, float, complex, str, bytes, bool, range, slice, type(None), type(Ellipsis)),
        *(type(NotImplemented), types.CodeType, types.GetSetDescriptorType, re.Pattern),
        *(types.MemberDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
        *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, fractions.Fraction, pathlib.PosixPath, pathlib.PurePosixPath),
    }
)
"""Types whose values cannot change and hold nothing that can."""


class Reach:
    """What one variable reaches."""

    def __init__(self) -> None:
        self.objects: dict[Any, Any] = {}
        """By identity, so that no other object gets the same identity meanwhile."""
        self.names: set[str] = set()
        """Names of variables that its functions refer to."""
        self.dynamic: str | None = None
        """How one of its functions can reach any variable."""
        self.modules: set[str] = set()


def find_reach(value: object, namespace: dict[str, Any]) -> Reach:
    """Walk all that `value` reaches, but for `namespace` itself."""
    reach = Reach()
    numpy: Any = sys.modules.get("numpy")
    torch: Any = sys.modules.get("torch")
    pandas: Any = sys.modules.get("pandas")
    array = getattr(numpy, "ndarray", ())
    dtype: Any = getattr(numpy, "dtype", ())
    tensor = getattr(torch, "Tensor", ())
    index: Any = getattr(pandas, "Index", ())
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if kind in _CONSTANTS or id(one) in reach.objects or one is namespace:
            continue
        if _ends_walk(one, kind, reach):
            continue
        if isinstance(one, (dtype, index, enum.Enum)):
            continue
        if kind is tuple and all(type(item) in _CONSTANTS for item in one):
            continue
        reach.objects[id(one)] = one
        if isinstance(one, array):
            _walk_array(one, array, reach, waiting)
        elif isinstance(one, tensor):
            with_storage = getattr(one, "untyped_storage", None)
            if with_storage is not None and not one.is_sparse:
                reach.objects["torch", with_storage().data_ptr()] = one
            grad = one.grad if one.is_leaf else None  # torch warns of others
            waiting += (grad, vars(one) if hasattr(one, "__dict__") else None)
        elif kind is types.FunctionType:
            _walk_function(one, namespace, reach, waiting)
        else:
            waiting += gc.get_referents(one)
    return reach


def _ends_walk(one: Any, kind: type, reach: Reach) -> bool:
    """Whether this is a module, or defined by one."""
    if isinstance(one, types.ModuleType):
        reach.modules.add(one.__name__)
        return True
    if isinstance(one, type):
        module = one.__module__
        if module == "__main__" or not is_importable(one):
            return False
        reach.modules.add(str(module))
        return True
    if kind is types.FunctionType and is_importable(one):
        reach.modules.add(one.__module__)
        return True
    owner = one.__self__ if kind is types.BuiltinFunctionType else False
    return owner is None or isinstance(owner, types.ModuleType)


def _walk_array(one: Any, array: Any, reach: Reach, waiting: list[Any]) -> None:
    owner = one
    while isinstance(owner.base, array):
        owner = owner.base
    memory = owner if owner.base is None else owner.base
    if isinstance(memory, memoryview):
        memory = memory.obj
    reach.objects[id(memory)] = memory
    if one.dtype.hasobject:
        waiting += one.ravel().tolist()
    if hasattr(one, "__dict__"):
        waiting.append(vars(one))


def _walk_function(
    function: Any, namespace: dict[str, Any], reach: Reach, waiting: list[Any]
) -> None:
    if function.__globals__ is namespace:
        found = find_code_names(function.__code__)
        reach.names |= found.names
        reach.dynamic = reach.dynamic or found.dynamic
    elif function.__module__:
        reach.modules.add(function.__module__)
    waiting += (
        *(function.__defaults__, function.__kwdefaults__, function.__closure__),
        *(vars(function), function.__annotations__),
    )


def is_importable(one: Any) -> bool:
    """Whether a class or function is what its module has under its name."""
    module, name = getattr(one, "__module__", None), getattr(one, "__qualname__", "")
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or module == "__main__":
        return False
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return False
    return found is one


def find_components(reaches: dict[str, Reach]) -> dict[str, frozenset[str]]:
    """For each variable, all variables that it shares objects with, itself included."""
    groups: dict[str, set[str]] = {}
    owner: dict[Any, str] = {}
    for name, reach in reaches.items():
        group = groups[name] = {name}
        for identity in reach.objects:
            other = owner.setdefault(identity, name)
            if other != name and other not in group:
                merged = groups[other]
                small, large = sorted((group, merged), key=len)
                large |= small
                for member in small:
                    groups[member] = large
                group = large
    return {name: frozenset(group) for name, group in groups.items()}
