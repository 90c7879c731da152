"""Positions of endpoints in a space where distances are latencies.

The latency of a pair is predicted as the distance between two points in eight dimensions plus the
height of each, which stands for the link that connects an endpoint to the network. This is the
model of Vivaldi (Dabek et al., SIGCOMM 2004). Vivaldi finds positions by a local rule, because none
of its nodes knows all measurements; here all are in one place, so all positions move together down
the gradient of one loss, which finds much better ones.

The loss is the logarithm of predicted to measured latency, so that errors count in proportion and
short latencies, among which a placement chooses, as much as long ones. Large errors count linearly
(Huber), so a wrong measurement moves little. Weak priors hold what few measurements determine.
"""

from dataclasses import dataclass

import numpy as np

from clew.placement.latency_table import Endpoint
from clew.placement.prediction.measured_pairs import Flags, Floats, Indexes, MeasuredPairs

DIMENSIONS = 8
USUAL_HEIGHT = 0.05
"""Relative to the median latency; where the heights begin, and what their prior prefers."""

POSITION_PRIOR = 0.03
HEIGHT_PRIOR = 0.01
LARGE_ERROR = 0.1
"""Where the loss becomes linear, in logarithms: about 10 %."""

NOISY = 0.1
"""A measurement with this relative error counts half."""

COLD_STEPS = 300
COLD_RATE = 0.05
WARM_STEPS = 60
WARM_RATE = 0.02
NEAR = 1e-3
"""Added to distances, relative to the median latency: two endpoints never coincide exactly."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A position and a height for each end, in milliseconds."""

    ends: tuple[Endpoint, ...]
    positions: Floats
    heights: Floats

    def distances(self, a: Indexes, b: Indexes) -> Floats:
        """The latencies that the model gives these pairs."""
        between = np.linalg.norm(self.positions[a] - self.positions[b], axis=-1)
        distances: Floats = between + self.heights[a] + self.heights[b]
        return distances


def fit_coordinates(pairs: MeasuredPairs, start: Coordinates | None = None) -> Coordinates:
    """Coordinates for these measurements; from those of an earlier fit it takes fewer steps."""
    unit = float(np.median(pairs.ms))
    positions, heights = _begin(pairs, start, unit)
    steps, rate = (COLD_STEPS, COLD_RATE) if start is None else (WARM_STEPS, WARM_RATE)
    _descend(pairs, unit, positions, heights, steps, rate)
    return Coordinates(pairs.ends, positions * unit, np.exp(heights) * unit)


def _begin(pairs: MeasuredPairs, start: Coordinates | None, unit: float) -> tuple[Floats, Floats]:
    """Positions and logarithms of heights to begin with, relative to `unit`."""
    count = len(pairs.ends)
    random = np.random.default_rng(0)
    positions = random.normal(0, 0.5, (count, DIMENSIONS))
    heights = np.full(count, np.log(USUAL_HEIGHT))
    if start is None:
        return positions, heights
    known = {end: at for at, end in enumerate(start.ends)}
    places = np.array([known.get(end, -1) for end in pairs.ends])
    old = places >= 0
    near = _nearest_known(pairs, old)
    new = ~old & (near >= 0)
    positions[old] = start.positions[places[old]] / unit
    heights[old] = np.log(start.heights[places[old]] / unit)
    positions[new] = 0.1 * positions[new] + positions[near[new]]
    return positions, heights


def _nearest_known(pairs: MeasuredPairs, known: Flags) -> Indexes:
    """For each end the known one with the shortest latency to it, or -1."""
    near = np.full(len(pairs.ends), -1)
    ends, peers = np.concatenate([pairs.a, pairs.b]), np.concatenate([pairs.b, pairs.a])
    farthest_first = np.argsort(-np.tile(pairs.ms, 2), kind="stable")
    usable = farthest_first[known[peers[farthest_first]]]
    near[ends[usable]] = peers[usable]
    return near


def _descend(
    pairs: MeasuredPairs, unit: float, positions: Floats, heights: Floats, steps: int, rate: float
) -> None:
    """Move positions and heights, in place, to where the loss is small: by Adam, ever slower."""
    ends = np.concatenate([pairs.a, pairs.b])
    order = np.argsort(ends, kind="stable")
    ends, peers = ends[order], np.concatenate([pairs.b, pairs.a])[order]
    measured = np.log(np.tile(pairs.ms, 2)[order] / unit)
    weights = np.tile(1 / (1 + (pairs.relative_error / NOISY) ** 2), 2)[order]
    firsts = np.searchsorted(ends, np.arange(len(pairs.ends)))
    degrees = pairs.degrees()
    movers = [_Adam(positions), _Adam(heights)]
    for step in range(1, steps + 1):
        away = positions[ends] - positions[peers]
        between = np.sqrt((away * away).sum(1) + NEAR**2)
        height = np.exp(heights)
        latency = between + height[ends] + height[peers]
        errors = np.clip(np.log(latency) - measured, -LARGE_ERROR, LARGE_ERROR)
        pull = weights * errors / latency
        pulls = np.add.reduceat(away * (pull / between)[:, None], firsts)
        lifts = np.add.reduceat(pull, firsts) * height
        lean = heights - np.log(USUAL_HEIGHT)
        slower = rate * (1 + np.cos(np.pi * step / steps)) / 2
        movers[0].move((pulls + POSITION_PRIOR * positions) / degrees[:, None], slower)
        movers[1].move((lifts + HEIGHT_PRIOR * lean) / degrees, slower)


class _Adam:
    """Gradient descent with a step size of its own for each value (Kingma and Ba, ICLR 2015)."""

    def __init__(self, values: Floats) -> None:
        self._values = values
        self._mean = np.zeros_like(values)
        self._square = np.zeros_like(values)
        self._count = 0

    def move(self, gradient: Floats, rate: float) -> None:
        self._count += 1
        self._mean += 0.1 * (gradient - self._mean)
        self._square += 0.01 * (gradient * gradient - self._square)
        mean = self._mean / (1 - 0.9**self._count)
        square = self._square / (1 - 0.99**self._count)
        self._values -= rate * mean / (np.sqrt(square) + 1e-8)
