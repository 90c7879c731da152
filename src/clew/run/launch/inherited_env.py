"""What the caller of `exec` hands on to the command, exactly as it was handed to Clew."""

from __future__ import annotations

import os
from contextlib import suppress


def caller_environment() -> dict[str, str]:
    """The caller's variables. Python itself adds one where the locale is plain C: that is taken
    out again, for the command is to find what it would find alone."""
    found = dict(os.environ)
    if found.get("LC_CTYPE") in ("C.UTF-8", "C.utf8", "UTF-8"):
        with suppress(OSError), open("/proc/self/environ", "rb") as file:
            if not any(entry.startswith(b"LC_CTYPE=") for entry in file.read().split(b"\0")):
                del found["LC_CTYPE"]
    return found
