"""The peers of the latency predictor: Vivaldi, matrix factorisation, and a random choice.

Each takes the true matrix and which pairs are measured (symmetric, as in Clew's own table), and
returns predictions of all pairs. None reads what is not measured. Times are in milliseconds.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]

DIMENSIONS, RANK = 8, 10
CE = CC = 0.25
MOST_ERROR = 1.5
LEAST_HEIGHT = 0.01
GRAVITY_RHO = 150_000.0
ROUNDS = 5000
RIDGE = 0.3
SWEEPS = 20


def vivaldi(true: Matrix, measured: Flags, random: np.random.Generator) -> Matrix:
    """Vivaldi with heights, gravity and the constants of Serf and Consul.

    Without their adjustments of each node's latencies, with which it was worse on PlanetLab. In
    each round every node probes one peer, as in each second of Serf; 5000 are more than an hour.
    """
    count = len(true)
    positions, heights = np.zeros((count, DIMENSIONS)), np.full(count, LEAST_HEIGHT)
    errors = np.full(count, MOST_ERROR)
    degrees = measured.sum(1)
    nodes = np.flatnonzero(degrees)
    peers_of = np.argsort(~measured, axis=1, kind="stable")
    for _ in range(ROUNDS):
        peers = peers_of[nodes, random.integers(0, degrees[nodes])]
        away = positions[nodes] - positions[peers]
        apart = np.linalg.norm(away, axis=1)
        both = heights[nodes] + heights[peers]
        distance, rtt = apart + both, true[nodes, peers]
        weight = errors[nodes] / np.maximum(errors[nodes] + errors[peers], 1e-6)
        wrong = CE * weight * np.abs(distance - rtt) / rtt + errors[nodes] * (1 - CE * weight)
        force = CC * weight * (rtt - distance)
        somewhere = random.normal(size=away.shape)
        away = np.where(apart[:, None] > 1e-6, away, somewhere)
        unit = away / np.linalg.norm(away, axis=1, keepdims=True)
        lifted = heights[nodes] + both * force / np.maximum(apart, 1e-6)
        errors[nodes] = np.minimum(wrong, MOST_ERROR)
        positions[nodes] += unit * force[:, None]
        heights[nodes] = np.where(apart > 1e-6, np.maximum(lifted, LEAST_HEIGHT), heights[nodes])
        far = np.linalg.norm(positions, axis=1, keepdims=True)
        positions -= positions / np.maximum(far, 1e-6) * (far / GRAVITY_RHO) ** 2
    apart = np.linalg.norm(positions[:, None] - positions, axis=2)
    return apart + heights[:, None] + heights


def factorisation(true: Matrix, measured: Flags, random: np.random.Generator) -> Matrix:
    """A matrix of rank 10 with the least squared error, by alternating ridge regression."""
    count, unit = len(true), float(true[measured].mean())
    left, right = 0.3 + 0.3 * random.normal(size=(2, count, RANK))
    for _ in range(SWEEPS):
        for ours, theirs in ((left, right), (right, left)):
            for node in range(count):
                known = measured[node]
                rows = theirs[known]
                ours[node] = np.linalg.solve(
                    rows.T @ rows + RIDGE * np.eye(RANK), rows.T @ (true[node, known] / unit)
                )
    predicted = left @ right.T
    return np.maximum((predicted + predicted.T) / 2 * unit, 0.1)


def random_choice(true: Matrix, measured: Flags, random: np.random.Generator) -> Matrix:
    """No prediction: any order of the candidates. Around the median of what was measured."""
    return np.median(true[measured]) * (1 + 1e-6 * random.normal(size=true.shape))
