"""Packages that dpkg installed, read from its database.

The lists name paths as the packages shipped them. Diversions (a file was moved for another package)
and merged directories (`/lib` is a link to `/usr/lib`) change them; both are applied here, so the
paths are the real ones.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from clew.packages.os_release import read_os_release
from clew.packages.owner_index import Package, PackageFiles
from clew.prov.package_urls import build_purl

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libo32")


def list_sources(root: Path) -> list[Path]:
    """The files that change when ownership changes."""
    admin = root / "var/lib/dpkg"
    return [
        admin / "status",
        admin / "info",
        admin / "diversions",
        root / "var/lib/apt/extended_states",
        root / "lib",  # merged or not
        root / "etc/os-release",  # the distribution
    ]


def is_installed(root: Path) -> bool:
    return (root / "var/lib/dpkg/status").is_file()


def read_packages(root: Path) -> PackageFiles:
    """Every installed package with the paths of its files."""
    admin = root / "var/lib/dpkg"
    merged = find_merged_directories(root)
    distribution = read_os_release(root).get("ID", "debian")
    automatic = _automatic(root / "var/lib/apt/extended_states")
    diverted = _diversions(admin / "diversions")
    installed = list(_installed(admin / "status"))
    native = next((row[1] for row in installed if row[0] == "dpkg"), "")
    for name, architecture, version, multi, removed in installed:
        both = f"{name}:{architecture}" if multi else name
        try:
            listed = (admin / "info" / f"{both}.list").read_bytes()
        except OSError:
            continue
        package = Package(
            build_purl("deb", name, version, namespace=distribution, arch=architecture),
            # apt lists packages of all architectures under the native one
            not removed
            and (name, native if architecture == "all" else architecture) not in automatic,
        )
        yield package, _files(listed, merged, diverted, name.encode())


def find_merged_directories(root: Path) -> dict[bytes, bytes]:
    """Top-level links to directories below /usr, such as `/lib` → `/usr/lib`."""
    merged: dict[bytes, bytes] = {}
    for name in _MERGED:
        try:
            target = os.readlink(root / name)
        except OSError:
            continue
        merged[b"/" + name.encode()] = os.fsencode(os.path.normpath(f"/{target}"))
    return merged


def resolve_merged(path: bytes, merged: dict[bytes, bytes]) -> bytes:
    """The path with a merged top-level directory resolved."""
    end = path.find(b"/", 1)
    top = merged.get(path[:end]) if end > 0 else None
    return path if top is None else top + path[end:]


def _files(
    listed: bytes,
    merged: dict[bytes, bytes],
    diverted: dict[bytes, tuple[bytes, bytes]],
    package: bytes,
) -> Iterator[bytes]:
    paths = listed.split(b"\n")
    for path, following in zip(paths, [*paths[1:], b""], strict=True):
        if following.startswith(path + b"/") or path in (b"", b"/."):
            continue  # a directory
        if path in diverted:
            target, owner = diverted[path]
            yield resolve_merged(path if owner == package else target, merged)
        else:
            yield resolve_merged(path, merged)


def _diversions(file: Path) -> dict[bytes, tuple[bytes, bytes]]:
    """Path → where other packages' file of that name is, and the package that diverts it."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return {}
    triples = zip(lines[::3], lines[1::3], lines[2::3], strict=False)
    return {source: (target, owner) for source, target, owner in triples}


def _automatic(file: Path) -> set[tuple[str, str]]:
    """(package, architecture) of packages that apt installed as dependencies."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return set()
    automatic: set[tuple[str, str]] = set()
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(\S+): *(.*)$", paragraph, re.MULTILINE))
        if fields.get("Auto-Installed") == "1" and "Package" in fields:
            automatic.add((fields["Package"], fields.get("Architecture", "")))
    return automatic


def _installed(file: Path) -> Iterator[tuple[str, str, str, bool, bool]]:
    """(name, architecture, version, whether its list is named after both, whether it was removed
    and only its settings are left)."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return
    wanted = re.compile(r"^(Package|Architecture|Version|Status|Multi-Arch): *(.*)$", re.MULTILINE)
    for paragraph in text.split("\n\n"):
        fields = dict(wanted.findall(paragraph))
        if "Version" in fields and not fields.get("Status", "").endswith(" not-installed"):
            yield (
                fields["Package"],
                fields.get("Architecture", ""),
                fields["Version"],
                fields.get("Multi-Arch") == "same",
                fields.get("Status", "").endswith(" config-files"),
            )
