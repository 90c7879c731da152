"""Restore the environment variables of the caller of `clew exec`."""

import os
from contextlib import suppress


def restore_caller_environment() -> dict[str, str]:
    """The caller's variables, without the LC_CTYPE that Python itself adds in the C locale: the
    command must see what it would see without Clew."""
    found = dict(os.environ)
    if found.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        with suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del found["LC_CTYPE"]
    return found
