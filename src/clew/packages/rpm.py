"""Packages that rpm installed, listed by one call of the rpm tool.

The database has had three formats; the tool reads them all. dnf records whether the user requested
a package: in a TOML file since dnf 5, in an SQLite database before. Without either it is unknown.
"""

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from clew.packages.debian import find_merged_directories, resolve_merged
from clew.packages.os_release import read_os_release
from clew.packages.owner_index import Package, PackageFiles
from clew.prov.package_urls import build_purl

_DATABASES = ("usr/lib/sysimage/rpm", "var/lib/rpm", "usr/share/rpm")
_FILES = ("rpmdb.sqlite", "Packages.db", "Packages")
_TABLE = "usr/lib/sysimage/libdnf5/packages.toml"
_HISTORY = "var/lib/dnf/history.sqlite"
_SECONDS = 20
_QUERY = r"[%{=NAME}\t%|EPOCH?{%{=EPOCH}}|\t%{=VERSION}-%{=RELEASE}\t%{=ARCH}\t%{FILENAMES}\n]"
_REQUESTED = frozenset({"user", "group", "external user"})
_HISTORY_REQUESTED = (2, 5, 6)
"""The numbers of dnf for: the user, a group of the user, and the user without dnf."""


def find_database(root: Path) -> Path | None:
    """The directory of rpm's database; None if there is none with packages."""
    for directory in _DATABASES:
        if any((root / directory / name).is_file() for name in _FILES):
            return root / directory
    return None


def list_sources(root: Path, dbpath: Path) -> list[Path]:
    files = [dbpath / name for name in (*_FILES, "rpmdb.sqlite-wal")]
    return [*files, root / _TABLE, root / _HISTORY]


def read_packages(root: Path, dbpath: Path) -> PackageFiles:
    """Every installed package with the paths of its files."""
    distribution = read_os_release(root).get("ID", "")
    requested = read_requested(root)
    merged = find_merged_directories(root)
    rows = (line.split(b"\t", 4) for line in _query(dbpath).split(b"\n") if line.count(b"\t") >= 4)
    for key, group in groupby(rows, key=lambda row: row[:4]):
        name, epoch, version, architecture = (word.decode(errors="replace") for word in key)
        purl = build_purl(
            "rpm",
            name,
            version,
            namespace=distribution,
            arch=architecture,
            epoch=epoch if epoch not in ("", "(none)") else "",
        )
        yield (
            Package(purl, requested.get(f"{name}.{architecture}")),
            [resolve_merged(row[4], merged) for row in group],
        )


def read_requested(root: Path) -> dict[str, bool]:
    """`name.arch` → whether the user requested it."""
    if not (root / _TABLE).is_file():
        return dict(_history(root / _HISTORY))
    import tomllib  # only with dnf 5

    try:
        table = tomllib.loads((root / _TABLE).read_text()).get("packages", {})
        return {
            name: str(entry.get("reason", "")).lower() in _REQUESTED
            for name, entry in table.items()
        }
    except (OSError, ValueError, AttributeError):
        return {}


def _history(file: Path) -> Iterator[tuple[str, bool]]:
    """Read the history of dnf 4; later transactions replace earlier ones."""
    if not file.is_file():
        return
    import sqlite3  # the file of another program, opened read-only

    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            yield from (
                (f"{name}.{architecture}", reason in _HISTORY_REQUESTED)
                for name, architecture, reason in connection.execute(
                    "SELECT rpm.name, rpm.arch, trans_item.reason FROM trans_item"
                    " JOIN rpm ON rpm.item_id = trans_item.item_id ORDER BY trans_item.id"
                )
            )
        finally:
            connection.close()
    except sqlite3.Error:
        return


def _query(dbpath: Path) -> bytes:
    import subprocess  # only with an rpm database

    try:
        done = subprocess.run(
            ("rpm", f"--dbpath={dbpath.absolute()}", "-qa", "--queryformat", _QUERY),
            check=False,
            env={"PATH": os.defpath + ":/usr/sbin:/sbin", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
