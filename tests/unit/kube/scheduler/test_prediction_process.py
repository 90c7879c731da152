"""Predictions by a process of its own."""

import asyncio
import math
import random

import pytest

from clew.kube.scheduler.prediction_process import PredictionFailed, PredictionProcess, Question
from clew.placement.latency_table import LatencyTable, location, node


def make_table(nodes: int) -> tuple[LatencyTable, dict[str, float]]:
    """A table on a plane that lacks the latencies of a few nodes to HOME; these latencies."""
    draw = random.Random(1)
    points = [(draw.uniform(0, 100), draw.uniform(0, 100)) for _ in range(nodes)]
    table, missing = LatencyTable(), {}
    for number, point in enumerate(points):
        for other in range(number):
            ms = 1 + math.dist(point, points[other])
            table.record(node(f"n{number}"), node(f"n{other}"), ms, at=1.0)
        if number % 10 == 9:
            missing[f"n{number}"] = 1 + math.dist(point, (50, 50))
        else:
            table.record(
                node(f"n{number}"), location("HOME"), 1 + math.dist(point, (50, 50)), at=1.0
            )
    return table, missing


def test_what_is_missing_is_predicted_again_and_again_until_the_process_ends() -> None:
    table, missing = make_table(50)

    async def predict() -> None:
        process = await PredictionProcess.start()
        try:
            for _ in range(2):
                predicted = (await process.ask(table, Question(2.0))).prediction.to_location("HOME")
                assert predicted.keys() == missing.keys()
                errors = [abs(predicted[name].ms - ms) / ms for name, ms in missing.items()]
                assert max(errors) < 0.5
        finally:
            await process.stop()
        with pytest.raises(PredictionFailed):
            await process.ask(table, Question(2.0))

    asyncio.run(predict())


def test_nodes_are_asked_for_what_may_be_nearer_than_what_is_measured() -> None:
    table, missing = make_table(50)
    locations = ["HOME", *(f"L{n}" for n in range(20))]
    table.record(node("n0"), location("version"), 12.0, at=1.0)

    async def ask() -> None:
        process = await PredictionProcess.start()
        try:
            question = Question(2.0, [f"n{n}" for n in range(50)], locations)
            answer = await process.ask(table, question, of=frozenset(locations))
        finally:
            await process.stop()
        assert answer.predicted == len(missing)
        assert answer.prediction.to_location("version") == {}
        asked = {name for name, of in answer.requests.items() if of.locations}
        assert len(asked) > 10
        assert all(of.nodes for of in answer.requests.values())

    asyncio.run(ask())
