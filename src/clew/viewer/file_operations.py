"""Make, rename, delete."""

from __future__ import annotations

import os
import shutil
import stat

from clew.errors import UsageError
from clew.viewer import linux_calls
from clew.viewer.volume import Volume, split_path, translate_errors


def make_folder(volume: Volume, path: bytes) -> None:
    with volume.place(path) as (folder, name):
        os.mkdir(name, dir_fd=folder)


def rename(volume: Volume, path: bytes, new: bytes) -> None:
    """Give something another name, in any folder; nothing that is there is replaced."""
    if split_path(new)[: len(split_path(path))] == split_path(path) and len(split_path(new)) > len(
        split_path(path)
    ):
        raise UsageError("a folder cannot be moved into itself")
    with (
        volume.place(path) as (old_folder, old_name),
        volume.place(new) as (new_folder, new_name),
    ):
        with translate_errors(path):
            os.lstat(old_name, dir_fd=old_folder)
        linux_calls.rename_new(old_folder, old_name, new_folder, new_name)


def delete(volume: Volume, path: bytes, *, everything: bool = False) -> None:
    """A file, a link (not what it leads to), or a folder: with `everything` also one that holds
    something. No link inside is followed."""
    with volume.place(path) as (folder, name):
        found = os.lstat(name, dir_fd=folder)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=folder)
        elif everything:
            shutil.rmtree(os.fsdecode(name), dir_fd=folder)
        else:
            os.rmdir(name, dir_fd=folder)
