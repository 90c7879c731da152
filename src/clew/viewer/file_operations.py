"""Make, rename, delete."""

import os
import shutil
import stat

from clew.errors import UsageError
from clew.viewer import linux_calls
from clew.viewer.volume import Volume, split_path, translate_errors


def make_directory(volume: Volume, path: bytes) -> None:
    with volume.place(path) as (directory, name):
        os.mkdir(name, dir_fd=directory)


def rename(volume: Volume, path: bytes, new: bytes) -> None:
    """Give something another name, in any directory; nothing that is there is replaced."""
    if split_path(new)[: len(split_path(path))] == split_path(path) and len(split_path(new)) > len(
        split_path(path)
    ):
        raise UsageError("a directory cannot be moved into itself")
    with (
        volume.place(path) as (old_directory, old_name),
        volume.place(new) as (new_directory, new_name),
    ):
        with translate_errors(path):
            os.lstat(old_name, dir_fd=old_directory)
        linux_calls.rename_new(old_directory, old_name, new_directory, new_name)


def delete(volume: Volume, path: bytes, *, everything: bool = False) -> None:
    """A file, a link (not what it leads to), or a directory: with `everything` also one that holds
    something. No link inside is followed."""
    with volume.place(path) as (directory, name):
        found = os.lstat(name, dir_fd=directory)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=directory)
        elif everything:
            shutil.rmtree(os.fsdecode(name), dir_fd=directory)
        else:
            os.rmdir(name, dir_fd=directory)
