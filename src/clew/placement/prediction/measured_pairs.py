"""The measured pairs at one moment, as arrays of numpy.

A snapshot, so that a thread can fit a prediction to it while measurements arrive. Each pair belongs
to one of `FOLDS` by its names alone: what is held out of a fit to learn its errors stays held out
of later fits, which begin where the earlier one ended.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

import numpy as np
from numpy.typing import NDArray

from clew.placement.latency_table import Endpoint, LatencyTable

Floats = NDArray[np.float64]
Indexes = NDArray[np.intp]
Flags = NDArray[np.bool_]

FOLDS = 8
MIXER = np.uint64(0x9E3779B97F4A7C15)
"""An odd number whose multiples differ in their high bits (2**64 over the golden ratio)."""


@dataclass(frozen=True, eq=False)
class MeasuredPairs:
    """Pair i is between `ends[a[i]]` and `ends[b[i]]`; every end has at least one pair."""

    ends: tuple[Endpoint, ...]
    a: Indexes
    b: Indexes
    ms: Floats
    error_ms: Floats
    hashes: NDArray[np.uint64]

    @classmethod
    def of_table(cls, table: LatencyTable, *, now: float) -> Self:
        ends = tuple(table.endpoints())
        index = {end: at for at, end in enumerate(ends)}
        pairs = sorted((index[a], index[b], found) for a, b, found in table.pairs())
        a = np.array([pair[0] for pair in pairs], dtype=np.intp)
        b = np.array([pair[1] for pair in pairs], dtype=np.intp)
        names = np.array([_hash_end(end) for end in ends], dtype=np.uint64)
        return cls(
            ends=ends,
            a=a,
            b=b,
            ms=np.array([found.ms for _, _, found in pairs], dtype=np.float64),
            error_ms=np.array([found.error_ms(now) for _, _, found in pairs], dtype=np.float64),
            hashes=(names[a] ^ names[b]) * MIXER >> np.uint64(32),
        )

    def __len__(self) -> int:
        return len(self.ms)

    @property
    def folds(self) -> Indexes:
        return (self.hashes % np.uint64(FOLDS)).astype(np.intp)

    @property
    def relative_error(self) -> Floats:
        return self.error_ms / self.ms

    def degrees(self) -> Indexes:
        """How many measurements each end has."""
        return np.bincount(np.concatenate([self.a, self.b]), minlength=len(self.ends))

    def choose(self, chosen: Flags) -> "MeasuredPairs":
        """These pairs alone, with the ends that they have."""
        kept = np.unique(np.concatenate([self.a[chosen], self.b[chosen]]))
        return MeasuredPairs(
            ends=tuple(self.ends[at] for at in kept),
            a=np.searchsorted(kept, self.a[chosen]),
            b=np.searchsorted(kept, self.b[chosen]),
            ms=self.ms[chosen],
            error_ms=self.error_ms[chosen],
            hashes=self.hashes[chosen],
        )

    def thin_out(self, limit: int) -> "MeasuredPairs":
        """About as many as `limit` pairs; an end with few keeps all of them."""
        if len(self) <= limit:
            return self
        least = np.minimum(self._ranks(self.a), self._ranks(self.b))
        return self.choose(least < max(1, limit // len(self.ends)))

    def _ranks(self, side: Indexes) -> Indexes:
        """The place of each pair among those with the same end on this side, in a fixed order."""
        order = np.lexsort((self.hashes, side))
        firsts = np.searchsorted(side[order], side[order])
        ranks = np.empty(len(self), dtype=np.intp)
        ranks[order] = np.arange(len(self)) - firsts
        return ranks

    def components(self) -> Indexes:
        """A number for each end: equal for two that a chain of measurements connects."""
        labels = np.arange(len(self.ends))
        while True:
            before = labels.copy()
            np.minimum.at(labels, self.a, labels[self.b])
            np.minimum.at(labels, self.b, labels[self.a])
            labels = labels[labels]
            if np.array_equal(labels, before):
                return labels


def _hash_end(end: Endpoint) -> int:
    return int.from_bytes(blake2b("/".join(end).encode(), digest_size=8).digest())
