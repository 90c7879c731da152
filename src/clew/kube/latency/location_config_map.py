"""The ConfigMap of the locations, as the kubelet mounts it: a file for each location.

The kubelet replaces the files when the ConfigMap changes, so they are read again and again.
"""

import os
from pathlib import Path

from clew.placement.measurement.locations import MOST_LOCATIONS, Locations, parse_locations

_LONGEST_ADDRESS = 300


def read_locations(directory: Path) -> Locations:
    """The locations in a directory; none, with a problem, if it cannot be read."""
    entries: dict[str, str] = {}
    try:
        with os.scandir(directory) as found:
            names = sorted(entry.name for entry in found if not entry.name.startswith("."))
        for name in names[: MOST_LOCATIONS + 1]:
            with open(directory / name, "rb") as file:
                entries[name] = file.read(_LONGEST_ADDRESS).decode(errors="replace")
    except OSError as error:
        return Locations({}, (f"cannot read the locations in {directory}: {error.strerror}",))
    return parse_locations(entries)
