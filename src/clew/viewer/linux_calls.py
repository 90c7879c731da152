"""Two calls of the kernel that Python has no name for."""

import ctypes
import errno
import os

from clew.confined_files import openat2

_BENEATH, _NO_MAGIC = 0x08, 0x02
_NO_REPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)


def open_beneath(directory: int, path: bytes, flags: int, mode: int = 0) -> int:
    """Open what `path` leads to, if that is in the directory: the kernel follows every link and
    `..` itself, and gives up (EXDEV) as soon as one leads out, whatever others rename meanwhile."""
    return openat2(directory, path, flags, mode, _BENEATH | _NO_MAGIC)


def rename_new(old_directory: int, old: bytes, new_directory: int, new: bytes) -> None:
    """Rename, unless there is something of the new name."""
    if _libc.renameat2(old_directory, old, new_directory, new, _NO_REPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number), os.fsdecode(new))
    try:  # a file system that cannot do both at once
        os.lstat(new, dir_fd=new_directory)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(new))
