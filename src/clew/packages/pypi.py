"""Packages that pip, uv and other installers installed, read from their RECORD files.

A directory with `*.dist-info` directories is a site; any directory may be one (`pip install
--target`). An editable distribution owns the files that the installer wrote into the site; its
source belongs to the user.
"""

import json
import os
import re
from collections.abc import Iterator

from clew.packages.owner_index import Package, PackageFiles
from clew.prov.package_urls import build_purl, normalize_pypi_name
from clew.redaction import mask_url

_IDENTITY = re.compile(rb"^(Name|Version): *(.*?)\s*$", re.MULTILINE)


def list_distributions(site: bytes) -> list[bytes]:
    """The names of a directory's `*.dist-info` directories; empty if it is not a site."""
    try:
        names = os.listdir(site)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(b".dist-info"))


def read_packages(site: bytes) -> PackageFiles:
    """Every distribution of a site with the absolute paths of its files."""
    for name in list_distributions(site):
        directory = site + b"/" + name
        project, version = _identity(directory, name)
        purl = build_purl("pypi", normalize_pypi_name(project), version, **_origin(directory))
        package = Package(purl, _requested(directory))
        yield package, _files(site, directory)


def _identity(directory: bytes, name: bytes) -> tuple[str, str]:
    """Name and version from the metadata, else from the name of the directory."""
    head = _read(directory + b"/METADATA").partition(b"\n\n")[0]
    fields = dict(_IDENTITY.findall(head.replace(b"\r", b"")))
    default_name, _, version = name.removesuffix(b".dist-info").partition(b"-")
    identity = fields.get(b"Name", default_name), fields.get(b"Version", version)
    return identity[0].decode(errors="replace"), identity[1].decode(errors="replace")


def _origin(directory: bytes) -> dict[str, str]:
    """The qualifiers of a package that did not come from an index."""
    try:
        direct_url = json.loads(_read(directory + b"/direct_url.json") or b"{}")
        url = mask_url(str(direct_url.get("url", "")))
        vcs = direct_url.get("vcs_info")
        if vcs:
            return {"vcs_url": f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}"}
    except (ValueError, AttributeError):  # not written by pip
        return {}
    return {"download_url": url}


def _requested(directory: bytes) -> bool | None:
    """The REQUESTED file of pip and uv; None for other installers, which write none."""
    if os.path.exists(directory + b"/REQUESTED"):
        return True
    return False if _read(directory + b"/INSTALLER").strip() in (b"pip", b"uv") else None


def _files(site: bytes, directory: bytes) -> Iterator[bytes]:
    import csv  # few names are quoted

    text = _read(directory + b"/RECORD").decode(errors="surrogateescape")
    for line in text.splitlines():
        quoted = line.startswith('"')
        name = next(iter(csv.reader([line])))[0] if quoted else line.partition(",")[0]
        if not name:
            continue
        path = os.path.join(site, name.encode(errors="surrogateescape"))
        yield os.path.normpath(path) if b"/../" in path else path


def _read(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
