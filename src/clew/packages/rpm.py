"""What rpm owns, asked of the rpm tool once and for all packages.

Its database has had three formats; the tool reads them all. Whether the user asked for a
package is dnf's to know, and it keeps that in a file of its own: a table in TOML since its
fifth generation, an SQLite database before. Where there is neither, nobody knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from clew.packages.debian import merged_directories, unmerge
from clew.packages.os_release import os_release
from clew.packages.owner_index import Owned, Package
from clew.prov.package_urls import build_purl

_DATABASES = ("usr/lib/sysimage/rpm", "var/lib/rpm", "usr/share/rpm")
_FILES = ("rpmdb.sqlite", "Packages.db", "Packages")
_TABLE = "usr/lib/sysimage/libdnf5/packages.toml"
_HISTORY = "var/lib/dnf/history.sqlite"
_SECONDS = 20
_QUERY = r"[%{=NAME}\t%|EPOCH?{%{=EPOCH}}|\t%{=VERSION}-%{=RELEASE}\t%{=ARCH}\t%{FILENAMES}\n]"
_ASKED = frozenset({"user", "group", "external user"})
_HISTORY_ASKED = (2, 5, 6)
"""dnf's numbers for the user, a group the user named, and the user without dnf."""


def database(root: Path) -> Path | None:
    """The directory of rpm's database, where there is one with packages in it."""
    for directory in _DATABASES:
        if any((root / directory / name).is_file() for name in _FILES):
            return root / directory
    return None


def sources(root: Path, dbpath: Path) -> list[Path]:
    inside = [dbpath / name for name in (*_FILES, "rpmdb.sqlite-wal")]
    return [*inside, root / _TABLE, root / _HISTORY]


def read(root: Path, dbpath: Path) -> Owned:
    """Every installed package with the paths of its files."""
    distribution = os_release(root).get("ID", "")
    asked = requested(root)
    merged = merged_directories(root)
    rows = (line.split(b"\t", 4) for line in _ask(dbpath).split(b"\n") if line.count(b"\t") >= 4)
    for key, group in groupby(rows, key=lambda row: row[:4]):
        name, epoch, version, architecture = (word.decode(errors="replace") for word in key)
        named = build_purl(
            "rpm",
            name,
            version,
            namespace=distribution,
            arch=architecture,
            epoch=epoch if epoch not in ("", "(none)") else "",
        )
        yield (
            Package(named, asked.get(f"{name}.{architecture}")),
            [unmerge(row[4], merged) for row in group],
        )


def requested(root: Path) -> dict[str, bool]:
    """`name.arch` → whether dnf was asked for it."""
    if not (root / _TABLE).is_file():
        return dict(_history(root / _HISTORY))
    import tomllib  # only where dnf left such a table

    try:
        table = tomllib.loads((root / _TABLE).read_text()).get("packages", {})
        return {name: str(told.get("reason", "")).lower() in _ASKED for name, told in table.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _history(file: Path) -> Iterator[tuple[str, bool]]:
    """From the older dnf's history; a later transaction's word replaces an earlier one's."""
    if not file.is_file():
        return
    import sqlite3  # another program's file, only read: none of Clew's own tables are here

    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            yield from (
                (f"{name}.{architecture}", reason in _HISTORY_ASKED)
                for name, architecture, reason in connection.execute(
                    "SELECT rpm.name, rpm.arch, trans_item.reason FROM trans_item"
                    " JOIN rpm ON rpm.item_id = trans_item.item_id ORDER BY trans_item.id"
                )
            )
        finally:
            connection.close()
    except sqlite3.Error:
        return


def _ask(dbpath: Path) -> bytes:
    import subprocess  # only where there is such a database

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
