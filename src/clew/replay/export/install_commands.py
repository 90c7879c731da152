"""The lines of a Dockerfile that install packages: the system's, Python itself, Python's."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from clew.prov.export.reports import pinned, requirement, usual_architecture
from clew.replay.export.file_sources import Ingredients, Package, Python, Site

_NEXT = " \\\n    "
_TITLES = {"deb": "Debian", "rpm": "RPM"}
_GONE = {
    "deb": "or, where the archive no longer has that, the one it has",
    "rpm": "(drop that here if the archive no longer has it)",
}
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
        yield f"# {title} packages whose files were used. Those asked for get the version they had"
        yield f"# {_GONE[manager]}."
        if along:
            yield "# Those that came along get what the archive has; they were:"
            yield from (f"#   {pinned(p, native)}" for p in along)
        plain = [_bare(p, native) for p in along]
        if needs.sites and not needs.python:
            plain += _TOOLS[manager]
        exact = [pinned(p, native) for p in asked]
        if manager == "rpm":
            yield _dnf(plain + exact)
        else:
            yield _apt(plain, exact, sorted(_foreign(packages, native)))


def _dnf(names: list[str]) -> str:
    return f"RUN dnf install --assumeyes{_NEXT}{_words(names)} \\\n && dnf clean all"


def _apt(plain: list[str], exact: list[str], foreign: list[str]) -> str:
    """Archives keep few versions: one that is gone must not be the end of all."""
    steps = [f"dpkg --add-architecture {arch}" for arch in foreign]
    steps += ["export DEBIAN_FRONTEND=noninteractive", "apt-get update"]
    steps += ["get='apt-get install --yes --no-install-recommends --allow-downgrades'"]
    if plain:
        steps.append(f"$get{_NEXT}{_words(plain)}")
    if exact:
        steps.append(
            f"for one in{_NEXT}{_words(exact)}; do{_NEXT}"
            "$get $one || $get ${one%%=*} || exit 1; done"
        )
    steps.append("rm -rf /var/lib/apt/lists/*")
    return "RUN " + " \\\n && ".join(steps)


def _words(names: list[str]) -> str:
    return _NEXT.join(map(shlex.quote, names))


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
        made = (f"{{ [ -L {path} ] || ln -s -- {target} {path}; }}" for path, target in named)
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
