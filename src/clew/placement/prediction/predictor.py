"""Predicts the latencies that nobody measured, again and again as measurements arrive.

Fitting takes up to seconds, so it belongs in a thread or, where nothing may wait for Python's lock,
in a process: take a snapshot of the table where the table lives, fit it there, and replace the
prediction that scoring reads. A fit begins with the coordinates of the one before, which is faster,
and predictions change no more than they must.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from clew.placement.latency_estimates import Estimate
from clew.placement.latency_table import Endpoint, location
from clew.placement.prediction.coordinates import Coordinates
from clew.placement.prediction.error_model import ErrorModel, HeldOut
from clew.placement.prediction.latency_model import LatencyModel
from clew.placement.prediction.measured_pairs import FOLDS, Floats, MeasuredPairs

MOST_PAIRS = 60_000
"""A fit uses no more pairs than about these, so that its time is bounded."""

ENOUGH_HELD_OUT = 400
"""Pairs to learn errors from; small tables need several folds for as many."""


class Column(NamedTuple):
    """The predicted latencies of nodes to one endpoint."""

    nodes: tuple[str, ...]
    ms: Floats
    error_ms: Floats


class Prediction:
    """`Estimates` of the latencies that nobody had measured at one moment; they never change.

    A node that no chain of measurements connects with a location has no estimate for it. Arrays
    keep it small, so that it can come from another process; estimates are made when asked for.
    """

    def __init__(self, columns: Mapping[Endpoint, Column]) -> None:
        self._columns = columns

    def to_location(self, name: str) -> Mapping[str, Estimate]:
        return self.to_endpoint(location(name))

    def to_endpoint(self, end: Endpoint) -> Mapping[str, Estimate]:
        """The same for any endpoint that the prediction was made for."""
        column = self._columns.get(end)
        if column is None:
            return {}
        return {
            name: Estimate(ms, error_ms, False)
            for name, ms, error_ms in zip(
                column.nodes, column.ms.tolist(), column.error_ms.tolist(), strict=True
            )
        }

    def count(self) -> int:
        """How many latencies are predicted."""
        return sum(len(column.nodes) for column in self._columns.values())


class LatencyPredictor:
    """Fits predictions one after another; one thread at a time may use it."""

    def __init__(self) -> None:
        self._coordinates: dict[int | None, Coordinates] = {}
        """Of the last fit: of all pairs (None), and of those without each fold."""

    def fit(
        self, measured: MeasuredPairs, targets: Collection[Endpoint] | None = None
    ) -> Prediction:
        """Predict what `measured` lacks to these endpoints: to all locations, if none are given."""
        if not len(measured):
            return Prediction({})
        pairs = measured.thin_out(MOST_PAIRS)
        model = self._fit(None, pairs)
        held_out = [HeldOut.nothing()]
        folds = pairs.folds
        for fold in range(min(FOLDS, -(-ENOUGH_HELD_OUT * FOLDS // len(pairs)))):
            kept = folds != fold
            if kept.any() and not kept.all():
                fitted = self._fit(fold, pairs.choose(kept))
                held_out.append(HeldOut.of_model(fitted, pairs.choose(~kept)))
        if targets is None:
            targets = [end for end in measured.ends if end.kind == "location"]
        return _predict(model, ErrorModel(HeldOut.join(held_out)), measured, targets)

    def _fit(self, fold: int | None, pairs: MeasuredPairs) -> LatencyModel:
        """A model of these pairs, from the last coordinates if they have most of its ends."""
        last = self._coordinates.get(fold)
        known = set(last.ends) if last else set()
        usable = 2 * len(known.intersection(pairs.ends)) >= len(pairs.ends)
        model = LatencyModel(pairs, last if usable else None)
        self._coordinates[fold] = model.coordinates
        return model


def _predict(
    model: LatencyModel,
    error_model: ErrorModel,
    measured: MeasuredPairs,
    targets: Collection[Endpoint],
) -> Prediction:
    """The columns of `targets`: without what is measured, also if the model left it out."""
    ends = measured.ends
    peers: dict[Endpoint, set[Endpoint]] = {end: {end} for end in targets}
    for a, b in zip(measured.a.tolist(), measured.b.tolist(), strict=True):
        for end, other in ((ends[a], ends[b]), (ends[b], ends[a])):
            if end in peers:
                peers[end].add(other)
    columns = {}
    index = {end: at for at, end in enumerate(model.pairs.ends)}
    for end in targets:
        target = index.get(end)
        if target is None:
            continue
        connected = np.flatnonzero(model.components == model.components[target]).tolist()
        wanted = [
            at
            for at in connected
            if (other := model.pairs.ends[at]).kind == "node" and other not in peers[end]
        ]
        if wanted:
            columns[end] = _predict_column(model, error_model, target, wanted)
    return Prediction(columns)


def _predict_column(
    model: LatencyModel, error_model: ErrorModel, target: int, wanted: list[int]
) -> Column:
    chosen = np.array(wanted, dtype=np.intp)
    ms = model.predict(target, chosen)
    error_ms = ms * error_model.relative_errors(model, target, chosen, ms)
    return Column(tuple(model.pairs.ends[at].name for at in wanted), ms, error_ms)
