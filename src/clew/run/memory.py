"""Gives memory back. What many threads allocate in turn leaves the C library with holes, which it
keeps: a run of a thousand tasks would grow by what each of its workers needed at most."""

from __future__ import annotations


def give_back() -> None:
    """What is free goes back to the system, where the C library can do that."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
