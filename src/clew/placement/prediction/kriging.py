"""Corrections of predicted latencies by what was measured nearby.

No coordinates fit all routes: a location may be reached from one site by a detour. Endpoints at
one site share it. So the residuals, measured minus predicted, of the endpoints near a node say
what to add to its own prediction. How much each counts follows from the distances between them, as
in geostatistics (kriging, or regression by a Gaussian process).
"""

import numpy as np

from clew.placement.prediction.coordinates import NOISY, Coordinates
from clew.placement.prediction.measured_pairs import Floats, Indexes

REACH = 0.5
"""How far a residual is felt: the distance, in median latencies, at which it counts 1/e."""

NOISE = 0.3
"""How much of a residual is a matter of one pair alone, relative to what its neighbours share."""

LARGE_RESIDUAL = 0.2
"""Residuals beyond this count less, in logarithms: more likely errors than routes."""

MOST_KNOWN = 500
"""More measurements to one endpoint than these say little more, and cost much time."""


def krige_residuals(
    coordinates: Coordinates,
    unit: float,
    known: Indexes,
    residuals: Floats,
    relative_error: Floats,
    wanted: Indexes,
) -> Floats:
    """Logarithms to add to the predictions of `wanted` endpoints towards one endpoint.

    `residuals` are the logarithms of measured to predicted latency from `known` endpoints to the
    same one, with the relative errors of the measurements. `unit` is the median latency.
    """
    step = -(-len(known) // MOST_KNOWN)
    known, residuals, relative_error = known[::step], residuals[::step], relative_error[::step]
    noise = NOISE * np.maximum(1, np.abs(residuals) / LARGE_RESIDUAL)
    noise += (relative_error / NOISY) ** 2
    positions = coordinates.positions / (REACH * unit)
    covariance = _covariances(positions[known], positions[known]) + np.diag(noise)
    corrections: Floats = _covariances(positions[wanted], positions[known]) @ np.linalg.solve(
        covariance, residuals
    )
    return corrections


def _covariances(a: Floats, b: Floats) -> Floats:
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T
    covariances: Floats = np.exp(-np.sqrt(np.maximum(squares, 0)))
    return covariances
