"""Write files to volumes, and hash files on them, from inside a Pod that has them.

    python volume_files.py ROOT < REQUEST

The first line of the request is JSON: `directories` to make, files to `restore`, files to `hash`.
Then follow the bytes of the restored files, one after the other. Paths are in Base64 and relative
to ROOT. The program prints a line of JSON for each file that it hashed.

Its source is sent to the Pod, so it imports the standard library and `blake3` only. A program that
ran on the volume may have left links: no path follows one.
"""

import hashlib
import json
import os
import stat
import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from blake3 import blake3

PIECE = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def open_directory(root: str, parts: list[bytes], *, make: bool) -> Iterator[int]:
    """Open a directory below `root`, component by component."""
    here = os.open(root, _DIRECTORY)
    try:
        for part in parts:
            if make:
                try:
                    os.mkdir(part, dir_fd=here)
                    os.chmod(part, 0o777, dir_fd=here)  # noqa: S103 (any user writes there)
                except FileExistsError:
                    pass
            below = os.open(part, _DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def split_path(encoded: str) -> list[bytes]:
    parts = [part for part in b64decode(encoded).split(b"/") if part]
    if not parts or b".." in parts or b"." in parts or any(b"\0" in part for part in parts):
        raise ValueError(f"not a path below a volume: {encoded}")
    return parts


def restore(root: str, file: dict[str, Any], given: BinaryIO) -> None:
    """Write one file; its old content is replaced as a whole."""
    *parents, name = split_path(file["path"])
    with open_directory(root, parents, make=True) as directory:
        part = name[:200] + b".clew-part"
        with suppress(FileNotFoundError):
            os.unlink(part, dir_fd=directory)  # a program may have left a pipe or a device there
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, 0o600, dir_fd=directory), "wb") as out:
            left = file["size"]
            while left:
                piece = given.read(min(left, PIECE))
                if not piece:
                    raise EOFError("the request ends within a file")
                out.write(piece)
                left -= len(piece)
            out.flush()
            os.fchmod(out.fileno(), file["mode"] & 0o777 | 0o666)
            os.utime(out.fileno(), ns=(file["mtime"], file["mtime"]))
        os.replace(part, name, src_dir_fd=directory, dst_dir_fd=directory)


def hash_file(root: str, file: dict[str, Any]) -> dict[str, Any]:
    """The digest by the algorithm that the record has, and the size; null without such a file."""
    *parents, name = split_path(file["path"])
    digest = blake3() if file["algorithm"] == "blake3" else hashlib.new(file["algorithm"])
    size = 0
    try:
        with open_directory(root, parents, make=False) as directory:
            there = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not stat.S_ISREG(there.st_mode):  # opening a device may do something
                return {"digest": None, "size": 0, "error": "it is not a file"}
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=directory), "rb") as opened:
                while piece := opened.read(PIECE):
                    digest.update(piece)
                    size += len(piece)
    except OSError as error:
        return {"digest": None, "size": 0, "error": error.strerror}
    return {"digest": f"{file['algorithm']}:{digest.hexdigest()}", "size": size}


def main(root: str) -> None:
    given = sys.stdin.buffer
    request = json.loads(given.readline())
    # Before others replace them; printed at the end, when the whole request has been read.
    hashed = [hash_file(root, file) for file in request["hash"]]
    for encoded in request["directories"]:
        with open_directory(root, split_path(encoded), make=True):
            pass
    for file in request["restore"]:
        restore(root, file, given)
    sys.stdout.writelines(f"{json.dumps(one)}\n" for one in hashed)


if __name__ == "__main__":
    main(sys.argv[1])
