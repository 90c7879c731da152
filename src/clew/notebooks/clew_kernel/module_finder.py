"""Find modules by looking for their files.

Python's own finder lists directories, so a cell that imports anything would depend on every name
in the directory of the notebook: also on those that later cells write.
"""

import importlib.machinery
import importlib.util
import os
import sys
from types import ModuleType

_SUFFIXES = (
    *importlib.machinery.EXTENSION_SUFFIXES,
    *importlib.machinery.SOURCE_SUFFIXES,
    *importlib.machinery.BYTECODE_SUFFIXES,
)
"""In the order in which Python looks for them."""


class ModuleFinder:
    """Finds modules in one directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def find_spec(
        self, name: str, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        base = os.path.join(self._directory, name.rpartition(".")[2])
        package = os.path.isdir(base)
        for found in ([os.path.join(base, "__init__")] if package else []) + [base]:
            for suffix in _SUFFIXES:
                if os.path.isfile(found + suffix):
                    inside = [base] if found != base else None
                    return importlib.util.spec_from_file_location(
                        name, found + suffix, submodule_search_locations=inside
                    )
        if not package:
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [base]
        return spec

    def invalidate_caches(self) -> None:
        """There are none."""


def install() -> None:
    """Use it for all directories that are searched from now on."""
    sys.path_hooks.insert(0, _find_finder)
    sys.path_importer_cache.clear()


def _find_finder(path: str) -> ModuleFinder:
    if not os.path.isdir(path):
        raise ImportError  # an archive: for the next hook
    return ModuleFinder(path)
