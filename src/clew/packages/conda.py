"""Packages that conda and mamba installed, read from an environment's `conda-meta` directory."""

import json
import os

from clew.packages.owner_index import Package, PackageFiles
from clew.prov.package_urls import build_purl


def is_environment(prefix: bytes) -> bool:
    return os.path.exists(prefix + b"/conda-meta/history")


def read_packages(prefix: bytes) -> PackageFiles:
    """Every package of an environment with the absolute paths of its files."""
    directory = prefix + b"/conda-meta"
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(b".json"))
    except OSError:
        return
    for name in names:
        try:
            with open(directory + b"/" + name, "rb") as file:
                metadata = json.load(file)
            package = Package(
                build_purl(
                    "conda",
                    str(metadata["name"]),
                    str(metadata["version"]),
                    build=str(metadata.get("build", "")),
                    channel=str(metadata.get("channel", "")).rstrip("/").rpartition("/")[2],
                ),
                # a dependency has none, or the text "None"
                metadata.get("requested_spec") not in (None, "", "None"),
            )
            files = [prefix + b"/" + str(path).encode() for path in metadata.get("files", ())]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        yield package, files
