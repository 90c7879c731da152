"""System calls that Python's standard library does not have, with their errors as OSError."""

import ctypes
import os
from typing import Any

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fanotify_mark.argtypes = (
    *(ctypes.c_int, ctypes.c_uint, ctypes.c_uint64),
    *(ctypes.c_int, ctypes.c_char_p),
)
_libc.open_by_handle_at.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
_libc.name_to_handle_at.argtypes = (
    *(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p),
    *(ctypes.POINTER(ctypes.c_int), ctypes.c_int),
)
_libc.statx.argtypes = (
    *(ctypes.c_int, ctypes.c_char_p, ctypes.c_int),
    *(ctypes.c_uint, ctypes.c_char_p),
)
_libc.syscall.restype = ctypes.c_long

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000


def call(name: str, *arguments: Any) -> int:
    """Call a function of the C library; OSError if it fails."""
    return _checked(getattr(_libc, name)(*arguments), name)


def system_call(number: int, *arguments: Any) -> int:
    """Call the kernel by the number of a call that the C library does not wrap."""
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return _checked(int(_libc.syscall(ctypes.c_long(number), *words)), f"system call {number}")


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result
