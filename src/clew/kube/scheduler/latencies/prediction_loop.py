"""Predict what is not measured, again and again as measurements arrive.

Predictions and what nodes are asked to measure come from the same fit, in another process.
"""

import asyncio
import logging
import math
import time

from clew.kube.scheduler.latencies.node_latency_watch import MeasuredLatencies
from clew.kube.scheduler.metrics import Metrics
from clew.kube.scheduler.prediction_process import (
    PredictionFailed,
    PredictionProcess,
    Question,
    can_predict,
)
from clew.kube.scheduler.scheduling_state import SchedulingState

_LOG = logging.getLogger("clew.scheduler")
_PAUSE_SECONDS = 5.0
_PAUSE_RATIO = 4
"""Wait so many times as long as the last fit took: it uses a fifth of a processor at most."""


class Predictions:
    def __init__(
        self, state: SchedulingState, latencies: MeasuredLatencies | None, metrics: Metrics
    ) -> None:
        self._state = state
        self._latencies = latencies
        self._metrics = metrics
        self._made_at = math.nan
        self._count = 0
        metrics.observe(
            "prediction_age_seconds",
            "Since the prediction that is used was made; NaN without one.",
            lambda: time.monotonic() - self._made_at,
        )
        metrics.observe(
            "predicted_latencies",
            "Pairs of a node and a location whose latency is predicted.",
            lambda: self._count,
        )

    async def run(self) -> None:
        if not can_predict():
            _LOG.warning("latencies are not predicted: pip install 'clew[placement]'")
            await asyncio.Event().wait()
        process = await PredictionProcess.start()
        revision = 0
        pause = _PAUSE_SECONDS
        try:
            while True:
                await asyncio.sleep(pause)
                if revision == self._state.table.revision:
                    continue
                revision = self._state.table.revision
                began = time.monotonic()
                try:
                    await self._predict(process)
                except PredictionFailed:
                    _LOG.warning("the process that predicts latencies has ended")
                    self._metrics.fits.labels("failed").inc()
                    await process.stop()
                    process = await PredictionProcess.start()
                pause = _PAUSE_SECONDS + _PAUSE_RATIO * (time.monotonic() - began)
        finally:
            await process.stop()

    async def _predict(self, process: PredictionProcess) -> None:
        """With locations, labels of unknown others are left out: they may be no latencies."""
        state, question, of = self._state, Question(time.time()), None
        if self._latencies is not None:
            locations = self._latencies.locations()
            unreachable = self._latencies.unreachable()
            question = Question(time.time(), state.node_names(), locations, unreachable)
            of = locations | state.asked_locations()
        began = time.monotonic()
        answer = await process.ask(state.table, question, of=of)
        self._made_at = time.monotonic()
        self._metrics.fits.labels("ok").inc()
        self._metrics.fit_seconds.observe(self._made_at - began)
        self._count = answer.predicted
        state.predict(answer.prediction)
        if self._latencies is not None:
            self._latencies.ask(answer.requests)
