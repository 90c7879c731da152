"""Where an execution's files stand when they are laid out in a folder for a person."""

from __future__ import annotations

import os

from clew.project_directory import CHECKOUT, NAME
from clew.safe_path import escape_names, unescape_names

MODE_BITS = 0o777
"""The bits of a mode that are laid out and compared: no record makes a set-uid program."""
OUTSIDE_DIRECTORY = b"_outside"
"""Holds what lay outside the working folder, by its whole path."""
STATE_FILE = CHECKOUT.encode()
RESERVED_NAMES = (STATE_FILE, NAME.encode())
"""Names in a checkout that are never an execution's files."""


def checkout_path(path: bytes, cwd: str) -> bytes:
    """The relative place of an absolute path: as the working folder sees it, else in OUTSIDE. No
    folder on the way is a project or a repository."""
    inside = os.fsencode(cwd).rstrip(b"/") + b"/"
    place = path.removeprefix(inside)
    if path.startswith(inside) and place.split(b"/", 1)[0] != OUTSIDE_DIRECTORY:
        return escape_names(place)
    return OUTSIDE_DIRECTORY + escape_names(path)


def original_path(place: bytes, cwd: str) -> bytes:
    """The absolute path that is laid out at this relative place."""
    if place.startswith(OUTSIDE_DIRECTORY + b"/"):
        return unescape_names(place.removeprefix(OUTSIDE_DIRECTORY))
    return os.path.join(os.fsencode(cwd), unescape_names(place))
