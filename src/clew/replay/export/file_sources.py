"""Sort an execution's files by where another machine gets them: packages to install, files to copy.

Files of a package are installed again, other files are copied from the record. System files that
belong to no package (`/etc/passwd`, the linker's cache) are left as the new system has them.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from clew.prov import package_urls
from clew.replay.export.portability import PortableExecution
from clew.replay.sandbox.initial_files import Entry

Package = Mapping[str, Any]
"""A package, in the form that `show --detail` returns."""

_SITE_PACKAGES = re.compile(rb"(?s)(.*)/lib(?:64)?/python(\d+\.\d+)t?/(?:site|dist)-packages(?=/)")
_PYTHON_HOME = re.compile(rb"(?s)(.*)/(?:bin/python\d|(?:lib|lib64|include)/python\d+\.\d)")
_PYTHON = re.compile(r"pkg:generic/python@(\d+(?:\.\d+)*[a-z0-9+]*)(?:\?.*)?")
_LOCAL = b"/usr/local/"
_PROGRAMS = (b"/bin", b"/sbin", b"/etc/alternatives")


@dataclass(frozen=True)
class Site:
    """A directory that pip installed packages to."""

    directory: bytes
    """The virtual environment, or else the package directory."""
    python: str
    """Its Python version: `3.11`."""
    virtual: bool
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Python:
    """A Python that no package manager installed, for example by pyenv or uv."""

    home: bytes
    version: str

    @property
    def short(self) -> str:
        """`3.11` of `3.11.7`."""
        return ".".join(self.version.split(".")[:2])

    @property
    def parts(self) -> tuple[bytes, ...]:
        """The paths that belong to it: all of its home, unless that is shared."""
        if self.home + b"/" != _LOCAL:
            return (self.home,)
        return tuple(self.home + b"/%s/python" % f + self.short.encode() for f in (b"bin", b"lib"))


@dataclass(frozen=True)
class FileSources:
    """Everything that a new system needs."""

    system: tuple[Package, ...]
    """Packages of the system's package manager."""
    python: Python | None
    sites: tuple[Site, ...]
    copied: Mapping[bytes, Entry]
    links: Mapping[bytes, bytes]
    """Program names that are links (`python3`); a record has no owner of a link."""
    left: int
    """The number of system files that no package owns and that are not copied."""
    conda: tuple[Package, ...]
    """Conda packages; the used files are copied, because only conda can install them."""


def find_sources(execution: PortableExecution) -> FileSources:
    """Sort the files of an execution by where they come from."""
    owners = _owners(execution)
    python = _python(execution)
    virtual = _virtual_environments(execution)
    copied: dict[bytes, Entry] = {}
    links: dict[bytes, bytes] = {}
    left = 0
    made = (*virtual, *(python.parts if python else ()))
    for path, entry in execution.plan.initial_files.entries.items():
        if _installed(path, owners.get(path), made):
            continue
        local = path.startswith(_LOCAL) and entry.kind in ("file", "link")
        if path in owners or local or execution.is_user_file(path):
            copied[path] = entry
        elif entry.kind == "link" and os.path.dirname(path).endswith(_PROGRAMS):
            links[path] = entry.target
        elif entry.kind == "file":
            left += 1
    return FileSources(
        system=_unique(p for p in owners.values() if p["manager"] in ("deb", "rpm")),
        python=python,
        sites=_sites(owners, virtual),
        copied=copied,
        links=links,
        left=left,
        conda=_unique(p for p in owners.values() if p["manager"] == "conda"),
    )


def _owners(execution: PortableExecution) -> dict[bytes, Package]:
    facts = execution.plan.facets.get("packages", {})
    owners: dict[bytes, Package] = {}
    for path, purl in execution.plan.packages.items():
        requested = facts.get(purl, {}).get("requested")
        try:
            package = package_urls.describe_package(purl, requested)
        except ValueError:  # a newer witness may know package URLs that this one cannot read
            continue
        if package is not None and path in execution.plan.initial_files.entries:
            owners[path] = package
    return owners


def _installed(path: bytes, package: Package | None, made: Iterable[bytes]) -> bool:
    """Whether installing packages or making environments creates this path."""
    inside = any(path == directory or path.startswith(directory + b"/") for directory in made)
    if package is None:
        return inside
    if package["manager"] == "pypi":
        return _from_index(package) and (inside or _SITE_PACKAGES.match(path) is not None)
    return package["manager"] in ("deb", "rpm")


def _from_index(package: Package) -> bool:
    """A package that was installed from a local directory is not available elsewhere."""
    return not str(package.get("url") or "").startswith("file:")


def _virtual_environments(execution: PortableExecution) -> dict[bytes, str]:
    """Virtual environments and their Python versions."""
    found = {}
    for path in execution.plan.initial_files.entries:
        if path.endswith(b"/pyvenv.cfg"):
            version = _python_version(execution.plan.packages.get(path, "")) or "3"
            found[os.path.dirname(path)] = ".".join(version.split(".")[:2])
    return found


def _python(execution: PortableExecution) -> Python | None:
    for path, purl in sorted(execution.plan.packages.items()):
        home = _PYTHON_HOME.match(path)
        version = _python_version(purl)
        if home is not None and version is not None:
            return Python(home[1], version)
    return None


def _python_version(purl: str) -> str | None:
    """The version of a Python that no package manager installed."""
    match = _PYTHON.fullmatch(purl)
    return match and match[1]


def _sites(owners: Mapping[bytes, Package], virtual: Mapping[bytes, str]) -> tuple[Site, ...]:
    packages: dict[bytes, list[Package]] = {directory: [] for directory in virtual}
    versions = dict(virtual)
    for path, package in sorted(owners.items()):
        match = _SITE_PACKAGES.match(path)
        if package["manager"] != "pypi" or match is None or not _from_index(package):
            continue
        place = match[1] if match[1] in virtual else match[0]
        versions.setdefault(place, match[2].decode())
        packages.setdefault(place, []).append(package)
    return tuple(
        Site(place, versions[place], place in virtual, _unique(some))
        for place, some in sorted(packages.items())
    )


def _unique(packages: Iterable[Package]) -> tuple[Package, ...]:
    """Each package once, sorted by name."""
    unique = {(p["name"], p["version"], p.get("arch") or ""): p for p in packages}
    return tuple(unique[key] for key in sorted(unique))
