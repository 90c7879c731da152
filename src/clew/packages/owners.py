"""Whose each file is: the one question put to all package managers at once.

Answers come from what the managers themselves recorded, never from where a file lies: dpkg
and rpm for the system, then conda, then the RECORD files of the site a file lies in, then
Pythons known by their shape. A file reached through a link belongs to whoever owns the file
it leads to (`/etc/alternatives`), and a compiled `.pyc` to the owner of its source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from blake3 import blake3

from clew.packages import conda, debian, pypi, python_builds, rpm
from clew.packages.owner_index import Index, Package, index
from clew.safe_path import KERNEL_DIRECTORIES

_COMPILED = re.compile(rb"(?s)(.*/)__pycache__/([^/]+?)\.[^./]+(?:\.opt-\d)?\.pyc")
_PYTHON_FILES = (b".py", b".pyc", b".so", b".pyi", b".pth")
_SITE = re.compile(rb"/(?:site|dist)-packages/|\.dist-info/")

Names = tuple[bytes, ...]


class Packages:
    """The packages of one machine. Records are read when first needed and kept in `cache`."""

    def __init__(
        self, cache: Path | None, *, root: Path = Path("/"), rpm_database: Path | None = None
    ) -> None:
        self._cache = cache
        self._root = root
        self._rpm_database = rpm_database or rpm.database(root)
        self._sites: dict[bytes, Index] = {}
        self._looked: set[bytes] = set()
        self._above: dict[bytes, tuple[bytes, ...]] = {}
        self._directories: dict[bytes, bytes] = {}
        self._met: dict[str, bool | None] = {}

    def owners(self, paths: Iterable[bytes]) -> dict[bytes, str]:
        """The owned ones among these absolute paths, each with its package URL."""
        found: dict[bytes, Package] = {}
        rest: dict[bytes, Names] = {}
        for path in paths:
            names = _names(self._settled(path))
            package = self._of_system(names)
            if package is not None:
                found[path] = package
            elif not path.startswith(KERNEL_DIRECTORIES):
                rest[path] = names
        for path, names in rest.items():  # all sites first: scripts lie outside their site
            if names[0].endswith(_PYTHON_FILES) or _SITE.search(names[0]):
                package = self._of_own_site(names)
                if package is not None:
                    found[path] = package
        for path, names in rest.items():
            if path in found:
                continue
            package = self._of_site(names)
            if package is None and os.path.islink(names[0]):
                target = _names(os.path.realpath(names[0]))
                package = self._of_system(target) or self._of_site(target)
            if package is not None:
                found[path] = package
        self._met.update(found.values())
        return {path: package.purl for path, package in found.items()}

    def requested(self) -> dict[str, bool | None]:
        """Every package met so far: asked for (True), came along (False), nobody knows (None)."""
        return dict(self._met)

    def facet(self, purls: Iterable[str] | None = None) -> dict[str, dict[str, bool | None]]:
        """The same for an execution's `ended` event: its facet `packages`. `purls`: only these."""
        met = self._met if purls is None else {purl: self._met[purl] for purl in purls}
        return {purl: {"requested": asked} for purl, asked in sorted(met.items())}

    def _of_system(self, names: Names) -> Package | None:
        return _first(self._system_indexes, names)

    def _of_own_site(self, names: Names) -> Package | None:
        """The site a path lies in knows best, the outermost first: a distribution may carry
        others inside it (as setuptools does), and those files are its own. Sites are looked for
        on the way. Asked only for files of Python's kinds: directories of data may be huge, and
        listing them would be for nothing."""
        directory = names[0].rpartition(b"/")[0]
        above = self._above.get(directory)
        if above is None:
            above = self._above[directory] = tuple(_downwards(directory))
        for around in above:
            if around not in self._looked:
                self._look_at(around)
            if around in self._sites and (package := _first((self._sites[around],), names)):
                return package
        return None

    def _of_site(self, names: Names) -> Package | None:
        around = [s for above, s in self._sites.items() if names[0].startswith(above + b"/")]
        return (
            _first(around, names)
            or _first(self._sites.values(), names)  # scripts, data files
            or python_builds.python_of(names[0])
        )

    def _settled(self, path: bytes) -> bytes:
        """The path with links among its directories followed, as the records speak of it."""
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
    def _system_indexes(self) -> list[Index]:
        root, database = self._root, self._rpm_database
        made: list[Index] = []
        if debian.present(root):
            read = debian.sources(root)
            made.append(index(self._cache, "deb", read, lambda: debian.read(root)))
        if database is not None:
            read = rpm.sources(root, database)
            made.append(index(self._cache, "rpm", read, lambda: rpm.read(root, database)))
        return made

    def _look_at(self, directory: bytes) -> None:
        self._looked.add(directory)
        made = self._environment(directory) or self._site(directory)
        if made is not None:
            self._sites[directory] = made
            self._sites = dict(sorted(self._sites.items(), key=lambda item: len(item[0])))

    def _environment(self, prefix: bytes) -> Index | None:
        if not conda.present(prefix):
            return None
        changed = [Path(os.fsdecode(prefix + b"/conda-meta"))]
        return index(self._cache, _name("conda", prefix), changed, lambda: conda.read(prefix))

    def _site(self, directory: bytes) -> Index | None:
        if not pypi.distributions(directory):
            return None
        changed = [Path(os.fsdecode(directory))]
        return index(self._cache, _name("pypi", directory), changed, lambda: pypi.read(directory))


def _downwards(directory: bytes) -> Iterator[bytes]:
    """The directories on the way, and itself; not the root."""
    end = directory.find(b"/", 1)
    while end > 0:
        yield directory[:end]
        end = directory.find(b"/", end + 1)
    if directory:
        yield directory


def _names(path: bytes) -> Names:
    """What to ask for: the path and, of a compiled Python file, its source."""
    compiled = _COMPILED.fullmatch(path) if path.endswith(b".pyc") else None
    return (path,) if compiled is None else (path, compiled[1] + compiled[2] + b".py")


def _first(indexes: Iterable[Index], names: Names) -> Package | None:
    """The first owner. One index is asked for all names before the next: who owns the source
    owns what was made of it."""
    for made in indexes:
        for name in names:
            package = made.owner(name)
            if package is not None:
                return package
    return None


def _name(kind: str, directory: bytes) -> str:
    return f"{kind}-{blake3(directory).hexdigest(length=10)}"
