"""What one cell depends on and what it changes, in the variables and the state of the process."""

import os
import sys
from typing import Any

from clew_kernel import process_state
from clew_kernel.code_names import CodeNames, find_names, hash_text, normalize
from clew_kernel.namespace_state import NamespaceState, Variables, find_shared_things
from clew_kernel.process_state import Modules, ProcessState
from clew_kernel.serialization import Serializer, read_saved
from clew_kernel.unsavable import Unsavable

_MAIN = ("__main__", "__mp_main__")  # the second is a name that multiprocessing gives it


class CellTracker:
    """Follows the cells of one kernel, one after the other."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.namespace = namespace
        self._serializer = Serializer(namespace)
        self._modules = Modules()
        self._unique: dict[int, tuple[Any, str]] = {}
        self.process = ProcessState()

    def begin(self, code: str) -> "Cell | None":
        """Look at everything that this code, with its magics translated, depends on. None: it is
        not Python."""
        tree = normalize(code)
        if tree is None:
            return None
        return Cell(self, hash_text(tree), find_names(code))

    def state(self) -> NamespaceState:
        return NamespaceState(self.namespace, self._serializer, self._modules, self._unique)

    def restore(self, path: str, document: dict[str, Any]) -> str | None:
        """Bring back what a cell left; the answer says why that is not possible, and then nothing
        that matters has changed."""
        for module in document["imports"]:
            try:
                __import__(module)
            except BaseException as error:
                return f"{module} cannot be imported ({type(error).__name__})"
        try:
            saved = self._serializer.load(read_saved(path))
        except (Unsavable, OSError) as why:
            return str(why)
        previous = self.process.save(list(saved["process"]))
        self.process.restore(saved["process"])
        now = self.process.begin_cell()
        for name, digest in document["process"].items():
            if now.get(name) != digest:
                self.process.restore(previous)
                return f"{name} would be different"
        variables = Variables(self.namespace)
        variables.set(saved["variables"])
        variables.delete(document["deleted"])
        state = self.state()
        for key, version in document["writes"].items():
            state.trust(frozenset(key.split(",")), version)
        return None


class Cell:
    """One cell that is about to run."""

    def __init__(self, tracker: CellTracker, key: str, code: CodeNames) -> None:
        self._tracker = tracker
        self.uid = os.urandom(16).hex()
        self.key = key
        self._before = before = tracker.state()
        self._closure, self.dynamic = before.close(code)
        self._assigned = code.assigned - self._closure
        self._written: set[str] = set()
        self._groups = before.groups(self._closure)
        self._raw = {group: before.raw(group) for group in self._groups}
        self._alone = {
            name: before.raw(frozenset({name}))
            for group in self._groups
            if len(group) > 1
            for name in group
        }
        self._things = process_state.shallow_states(find_shared_things(before, self._closure))
        self._process = tracker.process.begin_cell()
        self._loaded = set(sys.modules)
        self._activity = tracker.process.find_activity()
        self.reads = {
            _key(g & self._closure): before.version(g & self._closure) for g in self._groups
        }
        self.shared = {_key(g): before.version(g) for g in self._groups if not g <= self._closure}

    def hide_assigned(self) -> None:
        """Take away the variables that the cell may assign and cannot read: what is there after it
        was assigned by it, even if it is the same object."""
        for name in self._assigned:
            self._tracker.namespace.pop(name, None)

    def show_assigned(self) -> None:
        """Bring back those that it did not assign."""
        namespace = self._tracker.namespace
        self._written = {name for name in self._assigned if name in namespace}
        for name in (self._assigned & self._before.values.keys()) - self._written:
            namespace[name] = self._before.values[name]

    def question(self) -> dict[str, Any]:
        """What the recorder needs to find an earlier run of the same cell."""
        return {
            "kind": "begin",
            "cell": self.uid,
            "key": self.key,
            "reads": self.reads,
            "shared": self.shared,
            "process": self._process,
            "never": self._why_never(),
        }

    def _why_never(self) -> str | None:
        if self.dynamic is not None:
            return f"with {self.dynamic}, it can use any variable"
        if self._activity is not None:
            return self._activity
        for version in self.reads.values():
            if version.startswith("unsavable"):
                return f"its input cannot be saved: {version.partition(': ')[2]}"
        return None

    def fail(self) -> None:
        """The cell failed and cannot be reused; what it did to the process counts all the same."""
        self._tracker.process.end_cell()

    def end(self, folder: str) -> dict[str, Any]:
        """What the cell changed. Saves its variables in `folder`."""
        after = self._tracker.state()
        before = self._before
        deleted = sorted(before.values.keys() - after.values.keys())
        rebound = {n for n in after.values if not after.same_objects(before, n)} | self._written
        changed = rebound | self._mutated(after, rebound, deleted)
        kept = frozenset(member for name in changed for member in after.components[name])
        needed = {
            _key(before.components[name]): before.version(before.components[name])
            for name in kept - changed
            if name in before.components
        }
        for group in self._groups:
            if group & changed and not group <= self._closure:
                needed[_key(group)] = self.shared[_key(group)]
        process = self._tracker.process.end_cell()
        altered = [name for name, digest in process.items() if self._process.get(name) != digest]
        imports = [name for name in sys.modules if name not in self._loaded]
        document: dict[str, Any] = {
            "needs": needed,
            "deleted": deleted,
            "process": {name: process[name] for name in altered},
            "imports": [n for n in imports if "." not in n and n not in _MAIN],
            "writes": {},
        }
        why = self._why_never() or self._why_not_saved(after, imports)
        if why is None:
            why = self._save(after, kept, altered, imports, document, folder)
        return document | {"unsaved": why}

    def _mutated(self, after: NamespaceState, rebound: set[str], deleted: list[str]) -> set[str]:
        """Variables that still name the same object, which is different now."""
        changed: set[str] = set()
        for group in self._groups:
            left = frozenset(name for name in group if name in after.values and name not in rebound)
            if not left:
                continue
            if left == group:
                same = self._raw[group] == after.raw(group)
            elif len(left) == 1:
                [name] = left
                same = self._alone[name] == after.raw(left)
            else:
                same = False
            if not same or self._raw[group].startswith("unsavable"):
                changed |= left
        return changed

    def _why_not_saved(self, after: NamespaceState, imports: list[str]) -> str | None:
        activity = self._tracker.process.find_activity()
        if activity is not None:
            return activity
        replaced = process_state.find_replaced(self._things)
        if replaced is not None:
            return f"it changed {replaced}"
        return None

    def _save(
        self,
        after: NamespaceState,
        kept: frozenset[str],
        altered: list[str],
        imports: list[str],
        document: dict[str, Any],
        folder: str,
    ) -> str | None:
        """Save what the cell left; the answer says why that is not possible."""
        restorable = []
        for name in altered:
            try:
                self._tracker.process.save([name])
                restorable.append(name)
            except LookupError:
                if not imports:
                    return f"it changed {name}"
        values = {name: after.values[name] for name in sorted(kept)}
        process = self._tracker.process.save(restorable)
        try:
            saved = self._tracker._serializer.save({"variables": values, "process": process})
            self._tracker._serializer.load(saved)
        except Unsavable as why:
            return self._describe_unsavable(after, kept, str(why))
        for group in after.groups(kept):
            for part in {group, *(frozenset({name}) for name in group)}:
                version = after.version(part)
                if version.startswith("unsavable"):
                    return f"its result cannot be saved: {version.partition(': ')[2]}"
                document["writes"][_key(part)] = version
        saved.write(os.path.join(folder, f"{self.uid}.variables"))
        return None

    def _describe_unsavable(self, after: NamespaceState, kept: frozenset[str], why: str) -> str:
        for name in sorted(kept):
            if after.raw(frozenset({name})).startswith("unsavable"):
                return f"its result cannot be saved: {name} ({why})"
        return f"its result cannot be saved ({why})"


def _key(names: frozenset[str]) -> str:
    return ",".join(sorted(names))
