"""Loops: the order of outputs, and bounded work and memory."""

import gc
import random
import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.compiled_pipelines import constant, leaf, made, pipeline, task
from tests.unit.pipelines.engine_driver import INT, EngineDriver

from clew.pipelines.engine.engine import Engine, StartTask, TaskResult
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.ir import Pipeline
from clew.pipelines.spec.values import Values


@given(st.lists(st.integers(-5, 5), max_size=6), st.integers(0, 3), st.integers())
def test_a_loop_collects_outputs_in_the_order_of_its_items(
    items: list[int], limit: int, seed: int
) -> None:
    loop = {
        "dag": {
            "tasks": {"one": task("comp", parameters={"x": {"componentInputParameter": "item"}})},
            "outputs": {
                "parameters": {
                    "all": {
                        "valueFromParameter": {
                            "producerSubtask": "one",
                            "outputParameterKey": "Output",
                        }
                    }
                }
            },
        },
        "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}},
        "outputDefinitions": {"parameters": {"all": {"parameterType": "LIST"}}},
    }
    seen: list[Any] = []

    def work(node: Node) -> int:
        if node.task.name == "sum":
            seen.append(node.inputs.parameters["xs"])
            return 0
        return int(node.inputs.parameters["x"]) * 10

    driver = EngineDriver(
        pipeline(
            {
                "loop": task(
                    "comp-loop",
                    parameters={"given": constant(items)},
                    parameterIterator={"itemInput": "item", "items": {"inputParameter": "given"}},
                    iteratorPolicy={"parallelismLimit": limit},
                ),
                "sum": task("comp", parameters={"xs": made("loop", "all")}),
            },
            {**INT, "comp-loop": loop},
        ),
        work,
        choose=random.Random(seed).randrange,
    )
    assert seen == [[item * 10 for item in items]]
    assert driver.max_ready <= max(limit or len(items), 1)
    assert {f"loop/{n}/one" for n in range(len(items))} == set(driver.ran) - {"sum"}


def test_a_long_loop_of_skipped_tasks_ends() -> None:
    never = {"condition": "inputs.parameter_values['item'] == 'x'"}
    loop = {
        "dag": {
            "tasks": {
                "one": task(
                    "comp",
                    parameters={"item": {"componentInputParameter": "item"}},
                    triggerPolicy=never,
                )
            }
        },
        "inputDefinitions": {"parameters": {"item": {"parameterType": "STRING"}}},
    }
    what = pipeline(
        {
            "loop": task(
                "comp-loop",
                parameterIterator={"itemInput": "item", "items": {"raw": str([*range(3000)])}},
                iteratorPolicy={"parallelismLimit": 1},
            )
        },
        {**INT, "comp-loop": loop},
    )
    assert set(EngineDriver(what).states.values()) == {"skipped"}


def long_loop(inner: dict[str, Any], components: dict[str, Any]) -> Pipeline:
    """One that goes through the pipeline's input `xs`."""
    inside = {
        "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}},
        "dag": {"tasks": inner},
    }
    iterator = {"itemInput": "item", "items": {"inputParameter": "xs"}}
    loop = task(
        "comp-loop",
        parameters={"xs": {"componentInputParameter": "xs"}},
        parameterIterator=iterator,
    )
    return pipeline(
        {"loop": loop, "beside": task("comp")},
        {**components, "comp-loop": inside},
        inputDefinitions={"parameters": {"xs": {"parameterType": "LIST"}}},
    )


ITEM = {"x": {"componentInputParameter": "item"}}


def test_a_loop_keeps_few_iterations_in_memory() -> None:
    what = long_loop({"one": task("comp", parameters=ITEM)}, INT)
    before = sum(isinstance(one, Node) for one in gc.get_objects())
    engine = Engine(what, Values({"xs": list(range(100))}), ready_limit=5)
    ready = [one for one in engine.begin() if isinstance(one, StartTask)]
    ran: list[str] = []
    most = 0
    while ready:
        assert len(ready) <= 5
        path = ready.pop(0).node.path
        ran.append(path)
        instructions = engine.task_ended(path, TaskResult(outputs=Values({"Output": 1})))
        ready += [one for one in instructions if isinstance(one, StartTask)]
        del instructions
        if len(ran) % 25 == 0:  # it takes long
            most = max(most, sum(isinstance(one, Node) for one in gc.get_objects()))
    assert most <= before + 5 + 2
    assert engine.done
    assert set(ran) == {"beside", *(f"loop/{n}/one" for n in range(100))}


def count_engine_lines(pipeline: Pipeline, items: list[int]) -> int:
    """Run all tasks of a pipeline; returns how many lines of the engine that executed."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if "/pipelines/engine/" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        EngineDriver(pipeline, inputs={"xs": items}, ready_limit=len(items) + 1)
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("shape", ["parallel loop", "independent tasks", "chain"])
def test_the_work_of_the_engine_is_proportional_to_the_number_of_tasks(shape: str) -> None:
    def build(count: int) -> Pipeline:
        if shape == "parallel loop":
            return long_loop({"one": task("comp", parameters=ITEM)}, INT)
        after = [[f"t{n - 1}"] if n and shape == "chain" else [] for n in range(count)]
        return pipeline({f"t{n}": task("comp", names) for n, names in enumerate(after)}, INT)

    few, many = (count_engine_lines(build(n), list(range(n))) for n in (100, 400))
    assert many < 4.4 * few


def test_iterations_that_wait_for_a_retry_do_not_block_others() -> None:
    retry = {"maxRetryCount": 1, "backoffDuration": "3600s"}
    what = long_loop({"one": task("comp", parameters=ITEM, retryPolicy=retry)}, INT)
    engine = Engine(what, Values({"xs": list(range(20))}), ready_limit=2)
    fresh = [one for one in engine.begin() if isinstance(one, StartTask)]
    tried = set()
    while fresh:
        path = fresh.pop(0).node.path
        tried.add(path)
        instructions = engine.task_ended(path, TaskResult(error="not yet"))
        fresh += [one for one in instructions if isinstance(one, StartTask) and one.attempt == 1]
    assert tried >= {f"loop/{n}/one" for n in range(20)}


def test_the_inner_of_two_loops_advances_first() -> None:
    """So what was begun comes to its end, and little is begun at once."""
    deep = {
        "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}},
        "dag": {"tasks": {"one": task("comp", parameters=ITEM)}},
    }
    inner = task(
        "comp-deep", parameterIterator={"itemInput": "item", "items": {"raw": "[1, 2, 3, 4]"}}
    )
    what = long_loop({"deep": inner}, {**INT, "comp-deep": deep})
    engine = Engine(what, Values({"xs": list(range(50))}), ready_limit=3)
    ready = [one for one in engine.begin() if isinstance(one, StartTask)]
    ran: list[str] = []
    while ready:
        node = ready.pop(0).node
        ran.append(node.path)
        begun = {path.split("/")[1] for path in ran if "/" in path}
        over = {outer for outer in begun if sum(f"loop/{outer}/" in path for path in ran) == 4}
        assert len(begun - over) <= 3
        instructions = engine.task_ended(node.path, TaskResult(outputs=Values({"Output": 1})))
        ready += [one for one in instructions if isinstance(one, StartTask)]
    assert engine.done
    assert len(ran) == 1 + 50 * 4


def test_a_loop_over_artifacts() -> None:
    kind = {"artifactType": {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"}}
    many = {**kind, "isArtifactList": True}
    produced = {"taskOutputArtifact": {"producerTask": "a", "outputArtifactKey": "made"}}
    one = task("comp-one")
    one["inputs"] = {"artifacts": {"m": {"componentInputArtifact": "item"}}}
    loop = task(
        "comp-loop", artifactIterator={"itemInput": "item", "items": {"inputArtifact": "given"}}
    )
    loop["inputs"] = {"artifacts": {"given": produced}}
    maker = {**leaf(), "outputDefinitions": {"artifacts": {"made": many}}}
    reader = {**leaf(), "inputDefinitions": {"artifacts": {"m": kind}}}
    inside = {
        "dag": {"tasks": {"one": one}},
        "inputDefinitions": {"artifacts": {"item": kind, "given": many}},
    }
    components = {"comp-a": maker, "comp-one": reader, "comp-loop": inside}
    engine = Engine(pipeline({"a": task("comp-a"), "loop": loop}, components), Values())
    engine.begin()
    made = Values(artifacts={"made": [{"uri": "/x"}, {"uri": "/y"}]})
    instructions = engine.task_ended("a", TaskResult(outputs=made))
    runs = [one for one in instructions if isinstance(one, StartTask)]
    assert [(run.node.path, run.node.inputs.artifacts["m"]) for run in runs] == [
        ("loop/0/one", [{"uri": "/x"}]),
        ("loop/1/one", [{"uri": "/y"}]),
    ]
