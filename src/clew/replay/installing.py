"""The lines of a Dockerfile that install packages: the system's, Python itself, Python's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from clew.prov.reports import pinned, requirement, usual_architecture
from clew.replay.ingredients import Ingredients, Package, Python, Site

_NEXT = " \\\n    "
_TITLES = {"deb": "Debian", "rpm": "RPM"}
_TOOLS = {"deb": ["python3-pip", "python3-venv"], "rpm": ["python3-pip"]}
"""What the system's own Python needs to install packages."""


def system(needs: Ingredients) -> Iterator[str]:
    """Install the system's packages."""
    for manager, title in _TITLES.items():
        packages = [p for p in needs.system if p["manager"] == manager]
        if not packages:
            continue
        native = usual_architecture(packages)
        asked = [p for p in packages if p.get("requested") is not False]
        along = [p for p in packages if p.get("requested") is False]
        yield f"# {title} packages whose files were used. What was asked for has the version it"
        yield "# had; should that be gone from the archive, drop it here, or use a snapshot."
        if along:
            yield "# What came along has any version; then it was:"
            yield from (f"#   {pinned(p, native)}" for p in along)
        names = [pinned(p, native) for p in asked] + [_bare(p, native) for p in along]
        if needs.sites and not needs.python:
            names += _TOOLS[manager]
        yield _install(manager, names, sorted(_foreign(packages, native)))


def _install(manager: str, names: list[str], foreign: list[str]) -> str:
    words = _NEXT.join(map(shlex.quote, names))
    if manager == "rpm":
        return f"RUN dnf install --assumeyes{_NEXT}{words} \\\n && dnf clean all"
    first = "".join(f"dpkg --add-architecture {arch} && " for arch in foreign)
    return (
        f"RUN {first}apt-get update \\\n && DEBIAN_FRONTEND=noninteractive apt-get install --yes"
        f" --no-install-recommends --allow-downgrades{_NEXT}{words}"
        " \\\n && rm -rf /var/lib/apt/lists/*"
    )


def _foreign(packages: list[Package], native: str) -> set[str]:
    return {str(p.get("arch") or "all") for p in packages} - {"all", "noarch", native}


def _bare(package: Package, native: str) -> str:
    foreign = package["manager"] == "deb" and _foreign([package], native)
    return f"{package['name']}:{package['arch']}" if foreign else str(package["name"])


def links(needs: Ingredients) -> Iterator[str]:
    """Make the names of programs that came with another package, or with none."""
    if needs.links:
        yield "# Names by which programs were called, where the packages did not bring them."
        named = ((_path(path), _path(target)) for path, target in sorted(needs.links.items()))
        made = (f"{{ [ -L {path} ] || ln -s {target} {path}; }}" for path, target in named)
        yield "RUN " + " \\\n && ".join(made)


def python(needs: Ingredients, *, there: bool) -> Iterator[str]:
    """Put the Python of no package where it was. `there`: the base image has it."""
    found = needs.python
    if found is None:
        return
    home = _path(found.home)
    if not there:
        yield f"# Python {found.version} was of no package: whoever builds this must put it here."
        yield f"COPY python {home}"
    elif found.home != b"/usr/local":
        yield f"# This image's Python stands where the recorded one did, {_shown(found.home)}."
        yield f"RUN mkdir -p $(dirname {home}) && ln -s /usr/local {home}"


def sites(needs: Ingredients) -> Iterator[str]:
    """Make the virtual environments, and have pip fill them."""
    for site in needs.sites:
        yield f"# Python packages of {_shown(site.folder)}: those whose files were used, no others."
        if site.virtual:
            yield f"RUN {_python(site, needs.python)} -m venv {_path(site.folder)}"
        if site.packages:
            words = [
                _pip(site, needs.python),
                *(shlex.quote(requirement(p)) for p in site.packages),
            ]
            yield _NEXT.join(words)


def _pip(site: Site, python: Python | None) -> str:
    options = "install --no-cache-dir --no-deps"
    if site.virtual:
        return f"RUN {_path(site.folder)}/bin/python -m pip {options}"
    inside = python is not None and site.folder.startswith(python.home + b"/")
    where = "" if inside else f" --target {_path(site.folder)}"
    return f"RUN {_python(site, python)} -m pip {options}{where}"


def _python(site: Site, python: Python | None) -> str:
    if python is not None and python.short == site.python:
        return f"{_path(python.home)}/bin/python{site.python}"
    return f"python{site.python}"


def _path(path: bytes) -> str:
    return shlex.quote(_shown(path))


def _shown(path: bytes) -> str:
    """A path on one line."""
    return " ".join(path.decode(errors="replace").splitlines())
