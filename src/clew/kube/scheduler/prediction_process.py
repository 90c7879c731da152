"""Predict latencies in a process of its own, at a low priority.

A fit takes up to seconds. In a thread, it would hold Python's lock while kube-scheduler waits for a
decision. The process ends with the one that started it, which closes its standard input.

A request is lists of measurements and a question, the response an answer; each is a pickle with its
length before it. Both ends are Clew itself.
"""

import asyncio
import logging
import os
import pickle
import struct
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from clew.placement.latency_estimates import CombinedEstimates, MeasuredEstimates
from clew.placement.latency_table import Endpoint, LatencyTable, Measurement

if TYPE_CHECKING:
    from clew.placement.prediction.measurement_plan import Request
    from clew.placement.prediction.predictor import LatencyPredictor, Prediction

_LOG = logging.getLogger("clew.scheduler")
_LENGTH = struct.Struct(">Q")
_NICENESS = 10
_ENDPOINTS_AT_ONCE = 20
"""So many are copied before others may run."""

Pair = tuple[Endpoint, Endpoint, Measurement]


class Question(NamedTuple):
    """What a prediction needs to know besides measurements; without locations, nothing is asked of
    the nodes."""

    now: float
    nodes: Sequence[str] = ()
    locations: Collection[str] = ()
    unreachable: Mapping[str, Collection[str]] = {}


class Answer(NamedTuple):
    prediction: "Prediction"
    predicted: int
    """How many latencies the prediction has."""
    requests: "Mapping[str, Request]"
    """What nodes are to measure."""


class PredictionFailed(Exception):
    """The process has ended."""


def can_predict() -> bool:
    """Whether numpy is installed."""
    return find_spec("numpy") is not None


class PredictionProcess:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "PredictionProcess":
        pipe = asyncio.subprocess.PIPE
        # As a module with its own name: what it pickles is looked up by that.
        command = (sys.executable, "-c", f"from {__name__} import main; main()")
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))

    async def ask(
        self, table: LatencyTable, question: Question, *, of: Collection[str] | None = None
    ) -> Answer:
        """Raises PredictionFailed. `of`: the locations whose measurements are used; all, if none
        are given. What changes in the table meanwhile may be missing."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            async for part in _copy_pairs(table, of):
                stdin.write(_frame(part))
                await stdin.drain()
            stdin.write(_frame(question))
            (length,) = _LENGTH.unpack(await stdout.readexactly(_LENGTH.size))
            found: Answer = pickle.loads(await stdout.readexactly(length))  # noqa: S301 - ours
        except (OSError, asyncio.IncompleteReadError) as error:
            raise PredictionFailed from error
        return found

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


async def _copy_pairs(table: LatencyTable, of: Collection[str] | None) -> AsyncIterator[list[Pair]]:
    pairs: list[Pair] = []
    for number, end in enumerate(table.endpoints(), start=1):
        # Of two ends, the location is the first, so it is enough to look at these.
        if of is None or end.kind == "node" or end.name in of:
            pairs += [(end, to, m) for to, m in table.measurements_to(end).items() if end < to]
        if number % _ENDPOINTS_AT_ONCE == 0:
            yield pairs
            pairs = []
            await asyncio.sleep(0)
    yield pairs


def _frame(value: object) -> bytes:
    data = pickle.dumps(value)
    return _LENGTH.pack(len(data)) + data


def main() -> None:
    """Answer requests until standard input ends."""
    from clew.placement.prediction.predictor import LatencyPredictor

    os.nice(_NICENESS)
    predictor, table = LatencyPredictor(), LatencyTable()
    while (part := _read(sys.stdin.buffer)) is not None:
        if isinstance(part, list):
            for a, b, measured in part:
                table.record(a, b, measured.ms, at=measured.at, deviation_ms=measured.deviation_ms)
            continue
        assert isinstance(part, Question)
        sys.stdout.buffer.write(_frame(_answer(predictor, table, part)))
        sys.stdout.buffer.flush()
        table = LatencyTable()


def _answer(predictor: "LatencyPredictor", table: LatencyTable, question: Question) -> Answer:
    from clew.placement.prediction.measured_pairs import MeasuredPairs
    from clew.placement.prediction.measurement_plan import plan_measurements

    prediction = predictor.fit(MeasuredPairs.of_table(table, now=question.now))
    requests = plan_measurements(
        CombinedEstimates(MeasuredEstimates(table, now=question.now), prediction),
        nodes=question.nodes,
        locations=question.locations,
        excluded={(node, name) for node, names in question.unreachable.items() for name in names},
    )
    return Answer(prediction, prediction.count(), requests)


def _read(stream: BinaryIO) -> object:
    """The next value; None at the end."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    value: object = pickle.loads(stream.read(length))  # noqa: S301 - ours
    return value
