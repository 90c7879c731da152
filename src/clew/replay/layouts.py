"""Where an execution's files stand when they are laid out in a folder for a person."""

from __future__ import annotations

import os

OUTSIDE = b"_outside"
"""Holds what lay outside the working folder, by its whole path."""


def laid(path: bytes, cwd: str) -> bytes:
    """The relative place of an absolute path: as the working folder sees it, else in OUTSIDE."""
    inside = os.fsencode(cwd).rstrip(b"/") + b"/"
    if path.startswith(inside):
        return path.removeprefix(inside)
    return OUTSIDE + path
