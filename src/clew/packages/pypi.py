"""What pip, uv and their like installed, read from the RECORD files beside it.

A directory that holds `*.dist-info` directories is a site: any directory may be one (`pip install
--target`). A distribution installed as editable owns what the installer wrote into the site; its
source lies elsewhere and is the user's.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

from clew.packages.owner_index import Owned, Package
from clew.prov.package_urls import build_purl, normalize_pypi_name
from clew.redaction import mask_url

_IDENTITY = re.compile(rb"^(Name|Version): *(.*?)\s*$", re.MULTILINE)


def distributions(site: bytes) -> list[bytes]:
    """The names of a directory's `*.dist-info` directories; empty when it is no site."""
    try:
        names = os.listdir(site)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(b".dist-info"))


def read(site: bytes) -> Owned:
    """Every distribution of a site with the absolute paths of its files."""
    for name in distributions(site):
        directory = site + b"/" + name
        named, version = _identity(directory, name)
        name_there = build_purl("pypi", normalize_pypi_name(named), version, **_origin(directory))
        package = Package(name_there, _requested(directory))
        yield package, _files(site, directory)


def _identity(directory: bytes, name: bytes) -> tuple[str, str]:
    """Name and version: as the metadata has them, else as the directory is called."""
    head = _read(directory + b"/METADATA").partition(b"\n\n")[0]
    fields = dict(_IDENTITY.findall(head.replace(b"\r", b"")))
    called, _, version = name.removesuffix(b".dist-info").partition(b"-")
    found = fields.get(b"Name", called), fields.get(b"Version", version)
    return found[0].decode(errors="replace"), found[1].decode(errors="replace")


def _origin(directory: bytes) -> dict[str, str]:
    """Where it came from when not from an index, as qualifiers."""
    try:
        told = json.loads(_read(directory + b"/direct_url.json") or b"{}")
        url = mask_url(str(told.get("url", "")))
        vcs = told.get("vcs_info")
        if vcs:
            return {"vcs_url": f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', '')}"}
    except (ValueError, AttributeError):  # not written by pip: nothing is known
        return {}
    return {"download_url": url}


def _requested(directory: bytes) -> bool | None:
    """The mark that pip and uv leave; other installers leave none either way."""
    if os.path.exists(directory + b"/REQUESTED"):
        return True
    return False if _read(directory + b"/INSTALLER").strip() in (b"pip", b"uv") else None


def _files(site: bytes, directory: bytes) -> Iterator[bytes]:
    import csv  # for the few names that need its quoting

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
