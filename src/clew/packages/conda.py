"""What conda and mamba installed, read from an environment's `conda-meta` directory."""

from __future__ import annotations

import json
import os

from clew.packages.owner_index import Owned, Package
from clew.prov.package_urls import build_purl


def present(prefix: bytes) -> bool:
    return os.path.exists(prefix + b"/conda-meta/history")


def read(prefix: bytes) -> Owned:
    """Every package of an environment with the absolute paths of its files."""
    directory = prefix + b"/conda-meta"
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(b".json"))
    except OSError:
        return
    for name in names:
        try:
            with open(directory + b"/" + name, "rb") as file:
                told = json.load(file)
            package = Package(
                build_purl(
                    "conda",
                    str(told["name"]),
                    str(told["version"]),
                    build=str(told.get("build", "")),
                    channel=str(told.get("channel", "")).rstrip("/").rpartition("/")[2],
                ),
                # a package that came along has none, or the word for it
                told.get("requested_spec") not in (None, "", "None"),
            )
            files = [prefix + b"/" + str(path).encode() for path in told.get("files", ())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        yield package, files
