"""Save variables so that objects which they share stay shared, and name their values by a hash.

Variables are pickled together. Functions keep the names that they look up in the notebook, arrays
that show the same memory stay views of it, and nothing is saved that could not be read back: each
pickle is loaded once. The hash is that of the pickle of the loaded copy, because a copy pickled
again has the same bytes; the first one also depends on which equal texts happen to be one object.
"""

import contextlib
import functools
import hashlib
import io
import pickle
import struct
import sys
import types
from collections.abc import Iterator
from typing import Any

import cloudpickle
import cloudpickle.cloudpickle as by_value
from clew_kernel import tensors
from clew_kernel.object_graph import is_importable
from clew_kernel.unsavable import Unsavable

_MAGIC = b"clewvar1"
_LENGTH = struct.Struct("<Q")
_SETS = frozenset({set, frozenset})


class Saved:
    """Variables as bytes: a pickle, and the buffers of arrays beside it."""

    def __init__(self, stream: bytes, buffers: list[memoryview]) -> None:
        self.stream = stream
        self.buffers = buffers

    @functools.cached_property
    def digest(self) -> str:
        """The digest of these very bytes."""
        whole = hashlib.sha256(self.stream)
        for buffer in self.buffers:
            whole.update(_LENGTH.pack(buffer.nbytes))
            whole.update(buffer)
        return whole.hexdigest()

    def write(self, path: str) -> None:
        parts = [memoryview(self.stream), *self.buffers]
        with open(path, "wb") as file:
            file.write(_MAGIC + _LENGTH.pack(len(parts)))
            file.writelines(_LENGTH.pack(part.nbytes) for part in parts)
            file.writelines(parts)


def read_saved(path: str) -> Saved:
    """Read what `Saved.write` wrote."""
    with open(path, "rb") as file:
        head = file.read(len(_MAGIC) + _LENGTH.size)
        if head[: len(_MAGIC)] != _MAGIC:
            raise Unsavable("its saved variables are damaged")
        (count,) = _LENGTH.unpack(head[len(_MAGIC) :])
        sizes = [_LENGTH.unpack(file.read(_LENGTH.size))[0] for _ in range(count)]
        parts = []
        for size in sizes:
            part = bytearray(size)  # arrays are loaded onto it, and must be writable
            if file.readinto(part) != size:
                raise Unsavable("its saved variables are damaged")
            parts.append(memoryview(part))
    return Saved(bytes(parts[0]), parts[1:])


class _GlobalsOf:
    """Stands for the dictionary of a module in a pickle."""


class Serializer:
    """Saves and loads variables of one namespace."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._versions: dict[str, str] = {}  # of pickles, by their digests
        self.named_versions: dict[str, str] = {}
        """The recorded versions of restored variables, by the digests of their pickles now."""

    def save(self, variables: dict[str, Any]) -> Saved:
        """Pickle these variables together; raises Unsavable."""
        buffers: list[memoryview] = []
        stream = io.BytesIO()

        def keep(buffer: pickle.PickleBuffer) -> bool:
            try:
                buffers.append(buffer.raw())
            except BufferError:
                return True  # not contiguous: within the pickle
            return False

        with _without_class_ids(), _deep_recursion():
            try:
                _Pickler(stream, self._namespace, keep).dump(variables)
            except Unsavable:
                raise
            except RecursionError as error:
                raise Unsavable("it is nested too deeply") from error
            except Exception as error:
                raise Unsavable(_describe(error)) from error
        return Saved(stream.getvalue(), buffers)

    def load(self, saved: Saved) -> dict[str, Any]:
        """The variables, as new objects; raises Unsavable."""
        try:
            loaded = _Unpickler(
                io.BytesIO(saved.stream), self._namespace, buffers=list(saved.buffers)
            ).load()
        except Exception as error:
            raise Unsavable(_describe(error)) from error
        if not isinstance(loaded, dict):
            raise Unsavable("its saved variables are damaged")
        return loaded

    def version(self, saved: Saved) -> str:
        """Names the value: the same for the value and for a copy that was saved and loaded."""
        digest = saved.digest
        known = self._versions.get(digest)
        if known is None:
            loaded = self.load(saved)
            again = self.save(loaded)
            known = again.digest
            # A copy of the copy is a fixed point, or the value has no stable form.
            self._versions[digest] = known
            if self.save(self.load(again)).digest != known:
                del self._versions[digest]
                raise Unsavable("a saved copy of it differs from the original")
            self._versions[known] = known
        return known


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, namespace: dict[str, Any], keep: Any) -> None:
        super().__init__(file, protocol=5, buffer_callback=keep)
        self._namespace = namespace
        numpy: Any = sys.modules.get("numpy")
        torch: Any = sys.modules.get("torch")
        self._array = getattr(numpy, "ndarray", None)
        self._mapped = getattr(numpy, "memmap", ())
        self._tensor = getattr(torch, "Tensor", ())
        self._memories: dict[Any, tensors.Memory] = {}

    def persistent_id(self, obj: Any) -> Any:
        if obj is self._namespace:
            return "namespace"
        if type(obj) in _SETS and len(obj) > 1:
            _check_order(obj)
        if type(obj) is dict and isinstance(name := obj.get("__name__"), str):
            module = sys.modules.get(name)
            if module is not None and vars(module) is obj:
                return "module", name
        return None

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(obj)
        if kind is self._array:
            return self._reduce_array(obj)
        if self._mapped and isinstance(obj, self._mapped):
            raise Unsavable("it is a file mapped into memory")
        if self._tensor and isinstance(obj, self._tensor):
            return tensors.reduce_tensor(obj, self._memories)
        return super().reducer_override(obj)

    def _reduce_array(self, array: Any) -> Any:
        """A view of another array stays a view of it."""
        owner = array
        while isinstance(owner.base, self._array):
            owner = owner.base
        if owner is array or array.dtype.hasobject or type(owner) is not self._array:
            if owner is not array and not array.dtype.hasobject:
                raise Unsavable("it is a view of memory that cannot be saved")
            return NotImplemented
        start = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
        return _view, (owner, start, array.shape, array.strides, array.dtype, array.flags.writeable)


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, file: io.BytesIO, namespace: dict[str, Any], buffers: list[memoryview]
    ) -> None:
        super().__init__(file, buffers=buffers)
        self._namespace = namespace

    def persistent_load(self, name: Any) -> Any:
        if name == "namespace":
            return self._namespace
        return vars(_import_module(name[1]))

    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":  # it would be looked up by a name that may mean something else now
            raise Unsavable(f"it refers to {name} by its name")
        return super().find_class(module, name)


def _check_order(found: set[Any]) -> None:
    """A set that is filled again must have its members in the same order: a program sees it."""
    again = type(found)(list(found))
    if any(one is not other for one, other in zip(found, again, strict=True)):
        raise Unsavable("the order of a set depends on how it was filled")


def _describe(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _reduce_file(file: Any) -> Any:
    if not file.closed:
        raise Unsavable("it is an open file")
    name = file.name if isinstance(file.name, str) else "closed"
    return _closed_file, (type(file).__name__, name, getattr(file, "mode", "r"))


def _reduce_module(module: types.ModuleType) -> Any:
    if sys.modules.get(module.__name__) is not module:
        raise Unsavable(f"the module {module.__name__} cannot be imported")
    return _import_module, (module.__name__,)


def _reduce_cell(cell: types.CellType) -> Any:
    try:
        content = cell.cell_contents
    except ValueError:
        return types.CellType, ()
    return types.CellType, (), (None, {"cell_contents": content}), None, None, _fill_cell


def _fill_cell(cell: types.CellType, state: Any) -> None:
    cell.cell_contents = state[1]["cell_contents"]


def _reduce_function(function: types.FunctionType) -> Any:
    """By its code; the names that it uses are looked up where they were before."""
    if is_importable(function):
        return NotImplemented
    empty = _make_function, (function.__code__, function.__globals__, function.__closure__)
    state = {
        "name": function.__name__,
        "qualname": function.__qualname__,
        "module": function.__module__,
        "doc": function.__doc__,
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "annotations": function.__annotations__,
        "dict": vars(function),
    }
    return (*empty, state, None, None, _fill_function)


def _make_function(
    code: types.CodeType, namespace: dict[str, Any], closure: Any
) -> types.FunctionType:
    return types.FunctionType(code, namespace, None, None, closure)


def _fill_function(function: Any, state: dict[str, Any]) -> None:
    for name, value in state.items():
        if name == "dict":
            vars(function).update(value)
        else:
            setattr(function, f"__{name}__", value)


def _view(owner: Any, start: int, shape: Any, strides: Any, dtype: Any, writeable: bool) -> Any:
    import numpy

    memory = owner.ravel(order="K").view(numpy.uint8)
    view = numpy.ndarray(shape, dtype, memory, start, strides)
    view.flags.writeable = writeable and view.flags.writeable
    return view


def _closed_file(kind: str, name: str, mode: str) -> Any:
    """A file that was closed before it was saved, such as what a `with` block leaves."""
    raw = io.FileIO("/dev/null", "w" if kind == "BufferedWriter" else "r")
    raw.name = name
    file: Any = raw
    if kind == "BufferedWriter":
        file = io.BufferedWriter(raw)
    elif kind != "FileIO":
        file = io.BufferedReader(raw)
    if kind == "TextIOWrapper":
        file = io.TextIOWrapper(file, encoding="utf-8")
        file.mode = mode
    file.close()
    return file


def _import_module(name: str) -> types.ModuleType:
    __import__(name)
    return sys.modules[name]


_REDUCERS: dict[type, Any] = {
    types.CodeType: by_value._code_reduce,
    types.CellType: _reduce_cell,
    types.FunctionType: _reduce_function,
    types.ModuleType: _reduce_module,
    **dict.fromkeys((io.FileIO, io.TextIOWrapper), _reduce_file),
    **dict.fromkeys((io.BufferedReader, io.BufferedWriter, io.BufferedRandom), _reduce_file),
}


@contextlib.contextmanager
def _without_class_ids() -> Iterator[None]:
    """Pickle classes without the random number that cloudpickle gives each: the same class has the
    same bytes, and a loaded class is a new one."""
    original = by_value._get_or_create_tracker_id
    by_value._get_or_create_tracker_id = lambda _: None  # type: ignore[assignment]
    try:
        yield
    finally:
        by_value._get_or_create_tracker_id = original


@contextlib.contextmanager
def _deep_recursion() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
