"""The Dockerfile instructions that install system packages, Python, and Python packages."""

import shlex
from collections.abc import Iterator

from clew.prov.export.requirements_reports import (
    format_pinned_package,
    format_requirement,
    most_common_architecture,
)
from clew.replay.export.file_sources import FileSources, Package, Python, Site

_CONTINUATION = " \\\n    "
_TITLES = {"deb": "Debian", "rpm": "RPM"}
_MISSING_VERSION_NOTES = {
    "deb": "or, where the archive no longer has that, the one it has",
    "rpm": "(drop that here if the archive no longer has it)",
}
_PIP_PACKAGES = {"deb": ["python3-pip", "python3-venv"], "rpm": ["python3-pip"]}
"""Packages that the system's Python needs to install packages."""


def install_system_packages(sources: FileSources) -> Iterator[str]:
    """Install the packages of the system's package manager."""
    for manager, title in _TITLES.items():
        packages = [p for p in sources.system if p["manager"] == manager]
        if not packages:
            continue
        native = most_common_architecture(packages)
        requested = [p for p in packages if p.get("requested") is not False]
        dependencies = [p for p in packages if p.get("requested") is False]
        yield f"# {title} packages whose files were used. Requested ones get the version they had"
        yield f"# {_MISSING_VERSION_NOTES[manager]}."
        if dependencies:
            yield "# Dependencies get the version that the archive has; the recorded versions were:"
            yield from (f"#   {format_pinned_package(p, native)}" for p in dependencies)
        plain = [_unpinned(p, native) for p in dependencies]
        if sources.sites and not sources.python:
            plain += _PIP_PACKAGES[manager]
        exact = [format_pinned_package(p, native) for p in requested]
        if manager == "rpm":
            names = _quote_all(plain + exact)
            yield f"RUN dnf install --assumeyes{_CONTINUATION}{names} \\\n && dnf clean all"
        else:
            yield _apt(plain, exact, sorted(_foreign(packages, native)))


def _apt(plain: list[str], exact: list[str], foreign: list[str]) -> str:
    """Archives keep few versions, so fall back to the available one if a version is gone."""
    steps = [f"dpkg --add-architecture {arch}" for arch in foreign]
    steps += ["export DEBIAN_FRONTEND=noninteractive", "apt-get update"]
    steps += ["get='apt-get install --yes --no-install-recommends --allow-downgrades'"]
    if plain:
        steps.append(f"$get{_CONTINUATION}{_quote_all(plain)}")
    if exact:
        steps.append(
            f"for one in{_CONTINUATION}{_quote_all(exact)}; do{_CONTINUATION}"
            "$get $one || $get ${one%%=*} || exit 1; done"
        )
    steps.append("rm -rf /var/lib/apt/lists/*")
    return "RUN " + " \\\n && ".join(steps)


def _quote_all(names: list[str]) -> str:
    return _CONTINUATION.join(map(shlex.quote, names))


def _foreign(packages: list[Package], native: str) -> set[str]:
    return {str(p.get("arch") or "all") for p in packages} - {"all", "noarch", native}


def _unpinned(package: Package, native: str) -> str:
    foreign = package["manager"] == "deb" and _foreign([package], native)
    return f"{package['name']}:{package['arch']}" if foreign else str(package["name"])


def link_programs(sources: FileSources) -> Iterator[str]:
    """Create links for program names that no installed package provides."""
    if sources.links:
        yield "# Links by which programs were called, if no package has installed them."
        named = (
            (_quote_path(path), _quote_path(target))
            for path, target in sorted(sources.links.items())
        )
        made = (f"{{ [ -L {path} ] || ln -s -- {target} {path}; }}" for path, target in named)
        yield "RUN " + " \\\n && ".join(made)


def install_python(sources: FileSources, *, there: bool) -> Iterator[str]:
    """Provide a Python that is of no package. `there`: the base image has it."""
    python = sources.python
    if python is None:
        return
    home = _quote_path(python.home)
    if not there:
        yield f"# Python {python.version} is not from a package: install it here yourself."
        yield f"COPY python {home}"
    elif python.home != b"/usr/local":
        shown = _display_path(python.home)
        yield f"# The Python of this image replaces the recorded one, {shown}."
        yield f"RUN mkdir -p $(dirname {home}) && ln -s /usr/local {home}"


def install_python_packages(sources: FileSources) -> Iterator[str]:
    """Make the virtual environments, and install their packages with pip."""
    for site in sources.sites:
        shown = _display_path(site.directory)
        yield f"# Python packages of {shown}: only those whose files were used."
        if site.virtual:
            python = _python_command(site, sources.python)
            yield f"RUN {python} -m venv {_quote_path(site.directory)}"
        if site.packages:
            words = [
                _pip_command(site, sources.python),
                *(shlex.quote(format_requirement(p)) for p in site.packages),
            ]
            yield _CONTINUATION.join(words)


def _pip_command(site: Site, python: Python | None) -> str:
    options = "install --no-cache-dir --no-deps"
    if site.virtual:
        return f"RUN {_quote_path(site.directory)}/bin/python -m pip {options}"
    inside = python is not None and site.directory.startswith(python.home + b"/")
    where = "" if inside else f" --target {_quote_path(site.directory)}"
    return f"RUN {_python_command(site, python)} -m pip {options}{where}"


def _python_command(site: Site, python: Python | None) -> str:
    if python is not None and python.short == site.python:
        return f"{_quote_path(python.home)}/bin/python{site.python}"
    return f"python{site.python}"


def _quote_path(path: bytes) -> str:
    return shlex.quote(_display_path(path))


def _display_path(path: bytes) -> str:
    """A path on one line."""
    return " ".join(path.decode(errors="replace").splitlines())
