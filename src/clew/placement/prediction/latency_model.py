"""Latencies between the endpoints of measured pairs: coordinates, corrected by kriging."""

import numpy as np

from clew.placement.latency_table import LONGEST_MS, SHORTEST_MS
from clew.placement.prediction.coordinates import Coordinates, fit_coordinates
from clew.placement.prediction.kriging import krige_residuals
from clew.placement.prediction.measured_pairs import Floats, Indexes, MeasuredPairs

USUAL_COUNT = 4
"""As many residuals of the usual size are added to those of each end, which may be few."""


class LatencyModel:
    """Fitted to the pairs when it is made; `start` are the coordinates of an earlier fit.

    Endpoints are given by their index in `pairs.ends`.
    """

    def __init__(self, pairs: MeasuredPairs, start: Coordinates | None) -> None:
        self.pairs = pairs
        self.unit = float(np.median(pairs.ms))
        self.components = pairs.components()
        self.degrees = pairs.degrees()
        self.coordinates = fit_coordinates(pairs, start)
        residuals = np.log(pairs.ms / self.coordinates.distances(pairs.a, pairs.b))
        order = np.argsort(np.concatenate([pairs.a, pairs.b]), kind="stable")
        self._peers = np.concatenate([pairs.b, pairs.a])[order]
        self._residuals = np.tile(residuals, 2)[order]
        self._errors = np.tile(pairs.relative_error, 2)[order]
        self._firsts = np.concatenate([[0], np.cumsum(self.degrees)])
        sums = np.add.reduceat(np.abs(self._residuals), self._firsts[:-1])
        usual = np.abs(residuals).mean() + 1e-6
        self.misfits = (sums / usual + USUAL_COUNT) / (self.degrees + USUAL_COUNT)
        """How well the coordinates fit the measurements of each end, relative to the mean."""

    def predict(self, target: int, wanted: Indexes) -> Floats:
        """Latencies to `target` in milliseconds, from endpoints of the same component."""
        own = slice(self._firsts[target], self._firsts[target + 1])
        corrections = krige_residuals(
            self.coordinates,
            self.unit,
            self._peers[own],
            self._residuals[own],
            self._errors[own],
            wanted,
        )
        distances = self.coordinates.distances(np.full(len(wanted), target), wanted)
        predicted: Floats = np.clip(distances * np.exp(corrections), SHORTEST_MS, LONGEST_MS)
        return predicted
