"""Map the paths of an execution to places in a checkout."""

import os

from clew.project_directory import CHECKOUT, NAME
from clew.safe_path import escape_names, unescape_names

MODE_BITS = 0o777
"""The mode bits that are written and compared: no record makes a set-uid program."""
OUTSIDE_DIRECTORY = b"_outside"
"""Holds files from outside the working directory, by their absolute paths."""
STATE_FILE = CHECKOUT.encode()
RESERVED_NAMES = (STATE_FILE, NAME.encode())
"""Names in a checkout that are never an execution's files."""


def checkout_path(path: bytes, cwd: str) -> bytes:
    """The relative place of an absolute path: relative to the working directory, or in
    OUTSIDE_DIRECTORY. Names that would make a directory a project or a repository are escaped."""
    inside = os.fsencode(cwd).rstrip(b"/") + b"/"
    place = path.removeprefix(inside)
    if path.startswith(inside) and place.split(b"/", 1)[0] != OUTSIDE_DIRECTORY:
        return escape_names(place)
    return OUTSIDE_DIRECTORY + escape_names(path)


def original_path(place: bytes, cwd: str) -> bytes:
    """The absolute path of a relative place."""
    if place.startswith(OUTSIDE_DIRECTORY + b"/"):
        return unescape_names(place.removeprefix(OUTSIDE_DIRECTORY))
    return os.path.join(os.fsencode(cwd), unescape_names(place))
