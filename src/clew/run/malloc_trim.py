"""Return free heap memory to the system.

Allocations of many threads leave holes that the C library keeps: without this, a run of a thousand
tasks would grow by the peak of each of its workers."""

_LARGE = 1 << 17
_M_MMAP_THRESHOLD = -3


def trim_heap() -> None:
    """Return what is free now; from now on, large blocks are returned as soon as they are freed."""
    import ctypes

    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)  # a fixed threshold: the default one grows
        library.malloc_trim(0)
