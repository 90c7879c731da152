"""Which locations a node measures of its own accord.

With few locations, every node measures all of them. With many, it measures a fixed choice of its
own, so that the costs of a node and of a location are bounded; the scheduler asks for more where it
matters.
"""

from collections.abc import Collection
from hashlib import blake2b

DEFAULT_LOCATIONS = 8


def choose_own_locations(node: str, locations: Collection[str]) -> frozenset[str]:
    """Those that this node always measures: others than most nodes choose."""
    ranked = sorted(locations, key=lambda name: blake2b(f"{node}/{name}".encode()).digest())
    return frozenset(ranked[:DEFAULT_LOCATIONS])
