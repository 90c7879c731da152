"""Map files to the packages that own them.

Only the databases of the package managers count, never the location of a file: dpkg and rpm, then
conda, then the RECORD files of the site that contains the file, then Python builds. A link belongs
to the owner of its target (`/etc/alternatives`), and a compiled `.pyc` to the owner of its source.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from blake3 import blake3

from clew.packages import conda, debian, pypi, python_builds, rpm
from clew.packages.owner_index import OwnerIndex, Package, load_index
from clew.safe_path import KERNEL_DIRECTORIES

_COMPILED = re.compile(rb"(?s)(.*/)__pycache__/([^/]+?)\.[^./]+(?:\.opt-\d)?\.pyc")
_PYTHON_FILES = (b".py", b".pyc", b".so", b".pyi", b".pth")
_SITE = re.compile(rb"/(?:site|dist)-packages/|\.dist-info/")

Names = tuple[bytes, ...]


class Packages:
    """The packages of one machine. Databases are read when first needed; `cache` has the
    indexes."""

    def __init__(
        self, cache: Path | None, *, root: Path = Path("/"), rpm_database: Path | None = None
    ) -> None:
        self._cache = cache
        self._root = root
        self._rpm_database = rpm_database or rpm.find_database(root)
        self._sites: dict[bytes, OwnerIndex] = {}
        self._searched: set[bytes] = set()
        self._above: dict[bytes, tuple[bytes, ...]] = {}
        self._directories: dict[bytes, bytes] = {}
        self._requested: dict[str, bool | None] = {}

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, str]:
        """The owned ones among these absolute paths, each with its package URL."""
        owned: dict[bytes, Package] = {}
        rest: dict[bytes, Names] = {}
        for path in paths:
            names = _names(self._resolve_links(path))
            package = self._of_system(names)
            if package is not None:
                owned[path] = package
            elif not path.startswith(KERNEL_DIRECTORIES):
                rest[path] = names
        for path, names in rest.items():  # all sites first: scripts are outside their site
            if names[0].endswith(_PYTHON_FILES) or _SITE.search(names[0]):
                package = self._of_own_site(names)
                if package is not None:
                    owned[path] = package
        for path, names in rest.items():
            if path in owned:
                continue
            package = self._of_site(names)
            if package is None and os.path.islink(names[0]):
                target = _names(os.path.realpath(names[0]))
                package = self._of_system(target) or self._of_site(target)
            if package is not None:
                owned[path] = package
        self._requested.update(owned.values())
        return {path: package.purl for path, package in owned.items()}

    def requested(self) -> dict[str, bool | None]:
        """All packages so far: requested by the user (True), a dependency (False), unknown
        (None)."""
        return dict(self._requested)

    def facet(self, purls: Iterable[str] | None = None) -> dict[str, dict[str, bool | None]]:
        """The same as the facet `packages` of an execution. `purls`: only these."""
        chosen = self._requested if purls is None else purls
        return {purl: {"requested": self._requested[purl]} for purl in sorted(chosen)}

    def _of_system(self, names: Names) -> Package | None:
        return _first(self._system_indexes, names)

    def _of_own_site(self, names: Names) -> Package | None:
        """Look in the sites that contain the path, outermost first, because a distribution may
        contain others (as setuptools does). Only for Python files: listing large data directories
        to search for sites would be wasted."""
        directory = names[0].rpartition(b"/")[0]
        above = self._above.get(directory)
        if above is None:
            above = self._above[directory] = tuple(_parents(directory))
        for parent in above:
            if parent not in self._searched:
                self._find_site(parent)
            if parent in self._sites and (package := _first((self._sites[parent],), names)):
                return package
        return None

    def _of_site(self, names: Names) -> Package | None:
        containing = [s for above, s in self._sites.items() if names[0].startswith(above + b"/")]
        return (
            _first(containing, names)
            or _first(self._sites.values(), names)  # scripts, data files
            or python_builds.find_python(names[0])
        )

    def _resolve_links(self, path: bytes) -> bytes:
        """The path with the links in its directory resolved, as in the databases."""
        directory, _, name = path.rpartition(b"/")
        known = self._directories.get(directory)
        return (self._directory(directory) if known is None else known) + b"/" + name

    def _directory(self, directory: bytes) -> bytes:
        unknown = []
        while directory and directory not in self._directories:
            directory, _, name = directory.rpartition(b"/")
            unknown.append(name)
        known = self._directories.get(directory, b"")
        for name in reversed(unknown):  # a loop: paths may be thousands of directories deep
            directory, known = directory + b"/" + name, known + b"/" + name
            if os.path.islink(known):
                known = os.path.realpath(known).rstrip(b"/")
            self._directories[directory] = known
        return known

    @cached_property
    def _system_indexes(self) -> list[OwnerIndex]:
        root, database = self._root, self._rpm_database
        made: list[OwnerIndex] = []
        if debian.is_installed(root):
            read = debian.list_sources(root)
            made.append(load_index(self._cache, "deb", read, lambda: debian.read_packages(root)))
        if database is not None:
            read = rpm.list_sources(root, database)
            made.append(
                load_index(self._cache, "rpm", read, lambda: rpm.read_packages(root, database))
            )
        return made

    def _find_site(self, directory: bytes) -> None:
        self._searched.add(directory)
        made = self._environment(directory) or self._site(directory)
        if made is not None:
            self._sites[directory] = made
            self._sites = dict(sorted(self._sites.items(), key=lambda item: len(item[0])))

    def _environment(self, prefix: bytes) -> OwnerIndex | None:
        if not conda.is_environment(prefix):
            return None
        changed = [Path(os.fsdecode(prefix + b"/conda-meta"))]
        return load_index(
            self._cache, _name("conda", prefix), changed, lambda: conda.read_packages(prefix)
        )

    def _site(self, directory: bytes) -> OwnerIndex | None:
        if not pypi.list_distributions(directory):
            return None
        changed = [Path(os.fsdecode(directory))]
        return load_index(
            self._cache, _name("pypi", directory), changed, lambda: pypi.read_packages(directory)
        )


def _parents(directory: bytes) -> Iterator[bytes]:
    """The parent directories from the top, and the directory itself; not the root."""
    end = directory.find(b"/", 1)
    while end > 0:
        yield directory[:end]
        end = directory.find(b"/", end + 1)
    if directory:
        yield directory


def _names(path: bytes) -> Names:
    """The path and, for a compiled Python file, its source."""
    compiled = _COMPILED.fullmatch(path) if path.endswith(b".pyc") else None
    return (path,) if compiled is None else (path, compiled[1] + compiled[2] + b".py")


def _first(indexes: Iterable[OwnerIndex], names: Names) -> Package | None:
    """The first owner. Each index is searched for all names before the next one."""
    for index in indexes:
        for name in names:
            package = index.owner(name)
            if package is not None:
                return package
    return None


def _name(kind: str, directory: bytes) -> str:
    return f"{kind}-{blake3(directory).hexdigest(length=10)}"
