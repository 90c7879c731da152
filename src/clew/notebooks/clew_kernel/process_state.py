"""State of the process that is not in variables, but that cells depend on and change.

Random number generators, the working directory, the module search path and the settings of common
libraries are saved and restored like variables. Environment variables and what a cell changed in a
module are compared only: a cell that changed them runs again.
"""

import asyncio
import hashlib
import os
import pickle
import random
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from clew_kernel.fingerprints import fingerprints

_FRESH = "fresh"
"""The state of a random number generator that no cell has seeded or used: it is different in each
process, so that one is as good as another."""
_LIBRARIES = (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))
_VOLATILE = ("COLUMNS", "LINES", "CLEW_")


class _State(NamedTuple):
    module: str
    """The state exists once this module is loaded."""
    get: Callable[[], Any]
    set: Callable[[Any], object] | None
    random: bool = False


def _set_path(value: list[str]) -> None:
    sys.path[:] = value


def _set_filters(value: list[Any]) -> None:
    warnings.filters[:] = value
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _numpy() -> Any:
    return sys.modules["numpy"]


def _torch() -> Any:
    return sys.modules["torch"]


def _torch_states() -> list[bytes]:
    torch = _torch()
    states = [torch.get_rng_state()]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return [bytes(state.tolist()) for state in states]


def _set_torch_states(states: list[bytes]) -> None:
    torch = _torch()
    tensors = [torch.tensor(list(state), dtype=torch.uint8) for state in states]
    torch.set_rng_state(tensors[0])
    if tensors[1:]:
        torch.cuda.set_rng_state_all(tensors[1:])


def _pandas_options() -> str:
    return repr(sys.modules["pandas._config.config"]._global_config)


def _rc_params() -> dict[str, Any]:
    return dict(sys.modules["matplotlib"].rcParams)


def _set_rc_params(value: dict[str, Any]) -> None:
    dict.update(sys.modules["matplotlib"].rcParams, value)


def _environment() -> dict[str, str | None]:
    """How the variables differ from those at the start."""
    now = dict(os.environ)
    names = {name for name in {*now, *_at_start} if now.get(name) != _at_start.get(name)}
    return {name: now.get(name) for name in sorted(names) if not name.startswith(_VOLATILE)}


def _logging() -> Any:
    root = sys.modules["logging"].root
    return root.level, root.disabled, [repr(type(one)) for one in root.handlers]


_at_start = dict(os.environ)

_STATES: dict[str, _State] = {
    "the random state": _State("random", random.getstate, random.setstate, True),
    "the random state of numpy": _State(
        "numpy",
        lambda: _numpy().random.get_state(),
        lambda value: _numpy().random.set_state(value),
        True,
    ),
    "the random state of torch": _State("torch", _torch_states, _set_torch_states, True),
    "the working directory": _State("os", os.getcwd, os.chdir),
    "the module search path": _State("sys", lambda: list(sys.path), _set_path),
    "the environment variables": _State("os", _environment, None),
    "the recursion limit": _State("sys", sys.getrecursionlimit, sys.setrecursionlimit),
    "the filters of warnings": _State("warnings", lambda: list(warnings.filters), _set_filters),
    "the print options of numpy": _State(
        "numpy",
        lambda: _numpy().get_printoptions(),
        lambda value: _numpy().set_printoptions(**value),
    ),
    "the error handling of numpy": _State(
        "numpy", lambda: _numpy().geterr(), lambda value: _numpy().seterr(**value)
    ),
    "the options of pandas": _State("pandas", _pandas_options, None),
    "the settings of matplotlib": _State("matplotlib.pyplot", _rc_params, _set_rc_params),
    "the settings of scikit-learn": _State(
        "sklearn._config",
        lambda: sys.modules["sklearn._config"].get_config(),
        lambda value: sys.modules["sklearn._config"].set_config(**value),
    ),
    "the logging configuration": _State("logging", _logging, None),
    "the locale": _State("locale", lambda: sys.modules["locale"].setlocale(0), None),
    "the decimal context": _State(
        "decimal", lambda: repr(sys.modules["decimal"].getcontext()), None
    ),
}


class ProcessState:
    """The states, by name, as hashes."""

    def __init__(self) -> None:
        self._fresh = {name for name, one in _STATES.items() if one.random}
        self._before = self._hash_all()
        self._threads = set(threading.enumerate())
        self._writable = _writable_files()

    def begin_cell(self) -> dict[str, str]:
        """The hash of each state that exists now."""
        self._before = self._hash_all()
        return self._hide_fresh(self._before)

    def end_cell(self) -> dict[str, str]:
        """The hashes after a cell. A random number generator that it used is not fresh any more."""
        now = self._hash_all()
        self._fresh = {n for n in self._fresh if now.get(n) == self._before.get(n)}
        return self._hide_fresh(now)

    def _hide_fresh(self, hashes: dict[str, str]) -> dict[str, str]:
        return {name: _FRESH if name in self._fresh else h for name, h in hashes.items()}

    def _hash_all(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, state in _STATES.items():
            if state.module not in sys.modules:
                continue
            try:
                digest = fingerprints.make(pickle.dumps(state.get()))
            except Exception as error:  # a partly loaded or unusual module
                digest = f"unknown: {type(error).__name__}"
            found[name] = digest
        return found

    def save(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of these states; raises LookupError for one that cannot be restored."""
        values = {}
        for name in names:
            state = _STATES[name]
            if state.set is None:
                raise LookupError(name)
            values[name] = state.get()
        return values

    def restore(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            state = _STATES.get(name)
            self._fresh.discard(name)
            if state is not None and state.set is not None:
                state.set(value)

    def find_activity(self) -> str | None:
        """What goes on beside the cell, and could change anything at any time."""
        for thread in threading.enumerate():
            if thread not in self._threads and not _is_library_thread(thread):
                return f"the thread {thread.name} is running"
        written = _writable_files() - self._writable
        if written:
            return f"{min(written)} is open for writing"
        if _has_children():
            return "a process that it started is running"
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and pyplot.get_fignums():
            return "a figure of matplotlib is open"
        if "tensorflow" in sys.modules:
            return "the state of TensorFlow is not known"
        return None


def _is_library_thread(thread: threading.Thread) -> bool:
    """Threads that wait for the kernel's own messages, and those of the progress bar's monitor."""
    target = getattr(thread, "_target", None)
    loop = getattr(target, "__self__", None)
    if isinstance(loop, asyncio.AbstractEventLoop):  # IPython runs scripts with one
        return not asyncio.all_tasks(loop)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return str(module).partition(".")[0] in ("ipykernel", "zmq", "tornado", "tqdm", "IPython")


def _writable_files() -> set[str]:
    """Regular files that this process has open for writing."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
            if not path.startswith("/") or path.startswith(("/dev/", "/proc/")):
                continue
            with open(f"/proc/self/fdinfo/{number}") as info:
                flags = next(line for line in info if line.startswith("flags:"))
        except OSError:
            continue
        if int(flags.split()[1], 8) & os.O_ACCMODE:
            found.add(path)
    return found


def _has_children() -> bool:
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as children:
                if children.read().strip():
                    return True
        except OSError:
            continue
    return False


class Modules:
    """The code and the state of modules, as hashes."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, int, int], str] = {}

    def version(self, name: str, save: Callable[[dict[str, Any]], str]) -> str:
        """A module of a library by its version, one of the user's by its text and its state."""
        module = sys.modules.get(name)
        if module is None:
            return "absent"
        if not is_own(module):
            top: Any = sys.modules.get(name.partition(".")[0])
            return f"{name} {getattr(top, '__version__', sys.version)}"
        own = sorted(n for n, m in list(sys.modules.items()) if n != "__main__" and is_own(m))
        texts = [f"{one} {self._file(sys.modules[one])}" for one in own]
        return hashlib.sha256("\n".join([*texts, save(_state_of(module))]).encode()).hexdigest()

    def _file(self, module: types.ModuleType) -> str:
        path = module.__file__ or ""
        try:
            status = os.stat(path)
            key = path, status.st_size, status.st_mtime_ns
            if key not in self._files:
                with open(path, "rb") as file:
                    self._files[key] = hashlib.sha256(file.read()).hexdigest()
            return self._files[key]
        except OSError:
            return "gone"


def is_own(module: Any) -> bool:
    """Whether it is the user's, not of an installed package."""
    path = getattr(module, "__file__", None)
    if not isinstance(path, str) or getattr(module, "__name__", "") == "__main__":
        return False
    return not path.startswith(_LIBRARIES) and "site-packages" not in path


def _state_of(module: types.ModuleType) -> dict[str, Any]:
    """The variables of a module that are not its own code."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("__")
        and not isinstance(value, types.ModuleType)
        and not (isinstance(value, type | types.FunctionType) and hasattr(value, "__module__"))
    }


def shallow_states(things: Iterable[Any]) -> dict[int, tuple[Any, dict[str, int]]]:
    """What the attributes of modules and classes are now, to see what replaces them."""
    found = {}
    for thing in things:
        try:
            found[id(thing)] = thing, {n: id(v) for n, v in list(vars(thing).items())}
        except TypeError:
            continue
    return found


def find_replaced(before: dict[int, tuple[Any, dict[str, int]]]) -> str | None:
    """The first attribute of a module or a class that was replaced or removed."""
    for thing, values in before.values():
        now = vars(thing)
        for name, identity in values.items():
            if name.startswith("__") and name != "__init__":
                continue
            if name not in now or id(now[name]) != identity:
                return f"{getattr(thing, '__qualname__', thing.__name__)}.{name}"
    return None
