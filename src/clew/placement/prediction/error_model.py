"""How far a predicted latency is from the true one, relative to it.

Learned from pairs that were held out: predict them from the others, and compare. Errors grow with
how few measurements the two endpoints have, how badly the coordinates fit these, and how short the
latency is. The logarithm of the error is a linear function of these. Where little was held out,
the coefficients stay near those of fits to published matrices of latencies.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from clew.placement.prediction.latency_model import LatencyModel
from clew.placement.prediction.measured_pairs import Floats, Indexes, MeasuredPairs

WITHIN = 2 / 3
"""The share of true latencies that shall be within the error."""

USUAL = np.array([-2.9, -0.5, 1.8, 0.55])
"""Coefficients: a constant, and those of the three properties of a pair (see `_properties`)."""

WEIGHT = np.array([5.0, 20.0, 5.0, 20.0])
"""How many held-out pairs say as much as the usual coefficients do."""

USUAL_QUANTILE = 1.7
"""What the usual errors are to be multiplied by, so that two thirds are within."""

QUANTILE_WEIGHT = 10
LEAST = 0.005
MOST = 3.0


class HeldOut(NamedTuple):
    """Properties of pairs that a model did not see, and its relative errors there."""

    properties: Floats
    errors: Floats

    @classmethod
    def nothing(cls) -> Self:
        return cls(np.empty((0, len(USUAL))), np.empty(0))

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        return cls(*map(np.concatenate, zip(*parts, strict=True)))

    @classmethod
    def of_model(cls, model: LatencyModel, pairs: MeasuredPairs) -> Self:
        """What `model` predicts of these pairs, as far as it can."""
        index = {end: at for at, end in enumerate(model.pairs.ends)}
        ends = np.array([index.get(end, -1) for end in pairs.ends], dtype=np.intp)
        targets, wanted = ends[pairs.a], ends[pairs.b]
        possible = (targets >= 0) & (wanted >= 0)
        possible &= model.components[targets] == model.components[wanted]
        parts = [cls.nothing()]
        for target in np.unique(targets[possible]):
            these = possible & (targets == target)
            predicted = model.predict(target, wanted[these])
            properties = _properties(model, target, wanted[these], predicted)
            parts.append(cls(properties, np.abs(pairs.ms[these] / predicted - 1)))
        return cls.join(parts)


class ErrorModel:
    """Learned from what was held out, perhaps nothing."""

    def __init__(self, held_out: HeldOut) -> None:
        properties, errors = held_out
        missing = np.log(np.maximum(errors, LEAST)) - properties @ USUAL
        change = np.linalg.solve(
            properties.T @ properties + np.diag(WEIGHT), properties.T @ missing
        )
        self._coefficients = USUAL + change
        ratios = errors / np.exp(properties @ self._coefficients)
        quantile = np.log(max(np.quantile(ratios, WITHIN), LEAST)) if len(errors) else 0.0
        usual = QUANTILE_WEIGHT * np.log(USUAL_QUANTILE)
        self._factor = np.exp((len(errors) * quantile + usual) / (len(errors) + QUANTILE_WEIGHT))

    def relative_errors(
        self, model: LatencyModel, target: int, wanted: Indexes, predicted: Floats
    ) -> Floats:
        """Errors of `predicted`, the latencies that `model` predicts from `wanted` to `target`."""
        usual = np.exp(_properties(model, target, wanted, predicted) @ self._coefficients)
        errors: Floats = np.clip(self._factor * usual, LEAST, MOST)
        return errors


def _properties(model: LatencyModel, target: int, wanted: Indexes, predicted: Floats) -> Floats:
    """A row for each pair: 1, how long it is, how few measurements it has, how badly they fit."""
    length = np.log(predicted / model.unit)
    fewness = 1 / model.degrees[target] + 1 / model.degrees[wanted]
    misfit = np.log(model.misfits[target] * model.misfits[wanted])
    return np.column_stack([np.ones(len(wanted)), np.clip(length, -4, 2), fewness, misfit])
