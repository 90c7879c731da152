"""The variables of a notebook before and after a cell: what it could read, and what it changed."""

import os
import types
from typing import Any

from clew_kernel.code_names import CodeNames
from clew_kernel.fingerprints import fingerprints
from clew_kernel.object_graph import Reach, find_components, find_reach, is_importable
from clew_kernel.process_state import Modules
from clew_kernel.serialization import Saved, Serializer
from clew_kernel.unsavable import Unsavable

_HIDDEN = frozenset(
    {
        *("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtin__"),
        *("__builtins__", "__session__", "In", "Out", "_", "__", "___", "_i", "_ii", "_iii"),
        *("_ih", "_oh", "_dh", "exit", "quit", "get_ipython", "open", "_exit_code"),
    }
)
"""What IPython itself keeps among the variables."""


def is_hidden(name: str) -> bool:
    return name in _HIDDEN or (name[:1] == "_" and name.lstrip("_i").isdigit())


class Variables:
    """The variables, with the results that IPython keeps as `Out[1]`, `Out[2]`, …"""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace

    def all(self) -> dict[str, Any]:
        found = {name: v for name, v in self._namespace.items() if not is_hidden(name)}
        results = self._namespace.get("Out")
        if isinstance(results, dict):
            found |= {f"Out[{number}]": value for number, value in results.items()}
        return found

    def set(self, values: dict[str, Any]) -> None:
        results = self._namespace.get("Out", {})
        for name, value in values.items():
            if name.startswith("Out["):
                number = int(name[4:-1])
                results[number] = value
                self._namespace[f"_{number}"] = value
            else:
                self._namespace[name] = value
        last = [results[number] for number in sorted(results)][::-1]
        for name, value in zip(("_", "__", "___"), last, strict=False):
            self._namespace[name] = value

    def delete(self, names: list[str]) -> None:
        for name in names:
            self._namespace.pop(name, None)


class NamespaceState:
    """The variables at one moment, and how they hang together."""

    def __init__(
        self,
        namespace: dict[str, Any],
        serializer: Serializer,
        modules: Modules,
        unique: dict[int, tuple[Any, str]],
    ) -> None:
        self._serializer = serializer
        self._modules = modules
        self._unique = unique
        self.values = Variables(namespace).all()
        self._identities = {name: id(value) for name, value in self.values.items()}
        self.reaches = {name: find_reach(value, namespace) for name, value in self.values.items()}
        self.components = find_components(self.reaches)
        self._pickled: dict[frozenset[str], Saved | str] = {}

    def close(self, code: CodeNames) -> tuple[frozenset[str], str | None]:
        """All variables that the code can use, with those that their functions use; and how it can
        use any other."""
        names: set[str] = set()
        dynamic = code.dynamic
        waiting = set(code.names)
        while waiting:
            name = waiting.pop()
            reach = self.reaches.get(name)
            if reach is None or name in names:
                continue
            names.add(name)
            waiting |= reach.names
            dynamic = dynamic or reach.dynamic
        if dynamic is not None:
            names = set(self.values)
        return frozenset(names), dynamic

    def groups(self, names: frozenset[str]) -> list[frozenset[str]]:
        """The components that these names are of."""
        return list({self.components[name]: None for name in sorted(names)})

    def version(self, names: frozenset[str]) -> str:
        """The version of these variables together, with what they use of modules."""
        saved = self._pickle(names)
        if isinstance(saved, str):
            return self._unsavable(names, saved)
        known = self._serializer.named_versions.get(saved.digest)
        if known is not None:
            return known
        try:
            version = self._serializer.version(saved)
        except Unsavable as why:
            return self._unsavable(names, str(why))
        modules = {m for name in names for m in self.reaches[name].modules}
        parts = [version, *(self._module_version(module) for module in sorted(modules))]
        return fingerprints.make("\n".join(parts).encode())

    def raw(self, names: frozenset[str]) -> str:
        """The bytes of these variables now, to see whether they change in this process."""
        saved = self._pickle(names)
        return f"unsavable: {saved}" if isinstance(saved, str) else saved.digest

    def trust(self, names: frozenset[str], version: str) -> None:
        """These variables were just restored, and this was their version when they were saved."""
        if names <= self.values.keys():
            self._serializer.named_versions[self.raw(names)] = version

    def same_objects(self, other: "NamespaceState", name: str) -> bool:
        return self._identities.get(name) == other._identities.get(name)

    def _pickle(self, names: frozenset[str]) -> Saved | str:
        """The variables as they were at the first call; or why they cannot be saved."""
        if names not in self._pickled:
            try:
                saved = self._serializer.save({name: self.values[name] for name in sorted(names)})
                _ = saved.digest  # now: the buffers are those of the living arrays
                self._pickled[names] = saved
            except Unsavable as why:
                self._pickled[names] = str(why)
        return self._pickled[names]

    def _module_version(self, name: str) -> str:
        def save(values: dict[str, Any]) -> str:
            try:
                return self._serializer.version(self._serializer.save(values))
            except Unsavable as why:
                return self._unsavable(frozenset(), f"{name}: {why}")

        return self._modules.version(name, save)

    def _unsavable(self, names: frozenset[str], why: str) -> str:
        """A version that no other value has: it says why."""
        owner = [self.values[name] for name in sorted(names)]
        key = hash(tuple(id(value) for value in owner))
        self._unique.setdefault(key, (owner, os.urandom(8).hex()))
        return f"unsavable {self._unique[key][1]}: {', '.join(sorted(names))} ({why})"


def find_shared_things(state: NamespaceState, names: frozenset[str]) -> list[Any]:
    """Modules and classes of libraries that these variables name."""
    values = [state.values[name] for name in names]
    return [
        value
        for value in values
        if isinstance(value, types.ModuleType) or (isinstance(value, type) and is_importable(value))
    ]


__all__ = ["NamespaceState", "Reach", "Variables", "find_shared_things", "is_hidden"]
