"""Gives memory back. What many threads allocate in turn leaves the C library with holes, which it
keeps: a run of a thousand tasks would grow by what each of its workers needed at most."""

from __future__ import annotations

_LARGE = 1 << 17
_M_MMAP_THRESHOLD = -3


def trim_heap() -> None:
    """What is free goes back to the system, where the C library can do that; and from now on, what
    is large as soon as it is free."""
    import ctypes

    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)  # else it learns to keep ever larger ones
        library.malloc_trim(0)
