"""The decisions of the engine: events in, instructions out."""

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.compiled_pipelines import constant, leaf, made, pipeline, task
from tests.unit.pipelines.engine_driver import INT, EngineDriver, fails

from clew.pipelines.engine.engine import Engine
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.values import Values

# -- any graph

GRAPHS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2**n - 1), min_size=n, max_size=n),
        st.sets(st.integers(0, n - 1)),
        st.sets(st.integers(0, n - 1)),
        st.integers(),
    )
)


@given(GRAPHS)
def test_every_graph_runs_in_dependency_order(
    drawn: tuple[list[int], set[int], set[int], int],
) -> None:
    masks, broken, always, seed = drawn
    before = [{b for b in range(a) if mask >> b & 1} for a, mask in enumerate(masks)]
    tasks = {}
    for a, names in enumerate(before):
        more = (
            {"triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}} if a in always else {}
        )
        tasks[f"t{a}"] = task("comp", [f"t{b}" for b in sorted(names)], **more)
    driver = EngineDriver(
        pipeline(tasks, INT),
        fails(*(f"t{a}" for a in broken)),
        choose=random.Random(seed).randrange,
    )
    expected: list[str] = []
    for a, names in enumerate(before):
        good = a in always or all(expected[b] == "succeeded" for b in names)
        expected.append("skipped" if not good else "failed" if a in broken else "succeeded")
    assert driver.states == {f"t{a}": state for a, state in enumerate(expected)}
    for a, names in enumerate(before):  # nothing ran before what it needs
        for b in names:
            if {f"t{a}", f"t{b}"} <= set(driver.ran):
                assert driver.ran.index(f"t{b}") < driver.ran.index(f"t{a}")
    assert (driver.engine.failed is not None) is ("failed" in expected)


# -- one by one


def branch(name: str) -> dict[str, Any]:
    return {
        "dag": {
            "tasks": {name: task("comp")},
            "outputs": {
                "parameters": {
                    "made": {
                        "valueFromParameter": {
                            "producerSubtask": name,
                            "outputParameterKey": "Output",
                        }
                    }
                }
            },
        },
        "inputDefinitions": {"parameters": {"coin": {"parameterType": "STRING"}}},
    }


def test_only_the_chosen_branch_runs() -> None:
    def arm(component: str, condition: str) -> dict[str, Any]:
        coin = {"coin": {"componentInputParameter": "coin"}}
        return task(component, parameters=coin, triggerPolicy={"condition": condition})

    coin = "inputs.parameter_values['coin']"
    either = [
        {"producerSubtask": name, "outputParameterKey": "made"} for name in ("if-1", "else-2")
    ]
    branches = {
        "dag": {
            "tasks": {
                "if-1": arm("comp-if", f"{coin} == 'heads'"),
                "else-2": arm("comp-else", f"!({coin} == 'heads')"),
            },
            "outputs": {"parameters": {"one": {"valueFromOneof": {"parameterSelectors": either}}}},
        },
        "inputDefinitions": {"parameters": {"coin": {"parameterType": "STRING"}}},
    }
    what = pipeline(
        {
            "branches": task("comp-b", parameters={"coin": constant("tails")}),
            "after": task("comp", parameters={"x": made("branches", "one")}),
        },
        {**INT, "comp-b": branches, "comp-if": branch("yes"), "comp-else": branch("no")},
    )
    driver = EngineDriver(what, lambda node: 7)
    assert driver.ran == ["branches/else-2/no", "after"]
    assert driver.states["branches/if-1"] == "skipped"
    assert "does not hold" in (driver.why["branches/if-1"] or "")
    assert driver.engine.failed is None


def test_retries_wait_longer_each_time() -> None:
    policy = {"maxRetryCount": 2, "backoffDuration": "3s", "backoffFactor": 2.0}
    what = pipeline({"a": task("comp", retryPolicy=policy), "b": task("comp", ["a"])}, INT)
    driver = EngineDriver(what, fails("a"))
    assert (driver.ran, driver.waits) == (["a", "a", "a"], [0.0, 3.0, 6.0])
    assert driver.states == {"a": "failed", "b": "skipped"}
    left = [RuntimeError("once")]

    def work(node: Node) -> int:
        if left:
            raise left.pop()
        return 1

    assert EngineDriver(what, work).states == {"a": "succeeded", "b": "succeeded"}


def test_an_exit_task_gets_the_final_status() -> None:
    body = {"dag": {"tasks": {"work": task("comp")}}}
    status = {"taskFinalStatus": {"producerTask": "handler"}}
    what = pipeline(
        {
            "handler": task("comp-body"),
            "bye": task(
                "comp-bye",
                parameters={"status": status},
                triggerPolicy={"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"},
            ),
        },
        {**INT, "comp-body": body, "comp-bye": leaf({"status": "TASK_FINAL_STATUS?"})},
    )
    told: list[dict[str, Any]] = []

    def work(node: Node) -> int:
        if node.task.name == "work":
            raise RuntimeError("broken")
        told.append(node.inputs.parameters["status"])
        return 1

    driver = EngineDriver(what, work)
    assert (told[0]["state"], told[0]["pipelineTaskName"]) == ("FAILED", "handler")
    assert "broken" in told[0]["error"]["message"]
    assert driver.states == {"handler/work": "failed", "bye": "succeeded"}
    assert driver.engine.failed is not None  # the run failed, though its last task did not


def test_an_optional_input_without_a_value_is_left_out() -> None:
    inner = {
        "dag": {
            "tasks": {"leaf": task("comp", parameters={"x": {"componentInputParameter": "maybe"}})}
        },
        "inputDefinitions": {
            "parameters": {"maybe": {"parameterType": "NUMBER_INTEGER", "isOptional": True}}
        },
    }
    seen: list[dict[str, Any]] = []
    what = pipeline({"inner": task("comp-inner")}, {**INT, "comp-inner": inner})
    EngineDriver(what, lambda node: seen.append(node.inputs.parameters) or 1)
    assert seen == [{}]


def test_a_missing_input_fails_the_task_with_a_reason() -> None:
    what = pipeline({"a": task("comp")}, {"comp": leaf({"x": "NUMBER_INTEGER"})})
    driver = EngineDriver(what)
    assert (driver.ran, driver.states) == ([], {"a": "failed"})
    assert driver.why["a"] == "the input x has no value"


def test_members_and_placeholders() -> None:
    member = {**made("a"), "parameterExpressionSelector": 'parseJson(string_value)["k"]'}
    what = pipeline(
        {
            "a": task("comp-a"),
            "b": task(
                "comp-b",
                parameters={
                    "n": member,
                    "text": constant("{{$.pipeline_job_name}}: {{$.inputs.parameters['n']}}"),
                },
            ),
        },
        {
            "comp-a": leaf({}, {"Output": "STRUCT"}),
            "comp-b": leaf({"n": "NUMBER_INTEGER", "text": "STRING"}),
        },
    )
    seen: list[dict[str, Any]] = []

    def work(node: Node) -> Any:
        seen.append(node.inputs.parameters)
        return {"k": 3.0}

    assert EngineDriver(what, work).engine.failed is None
    assert seen[1] == {"n": 3, "text": "job: 3"}


def test_conditions_use_facts_of_the_run_and_literals_are_checked() -> None:
    about = {"condition": "inputs.parameter_values['x'] == '{{$.pipeline_job_name}}'"}
    literal = leaf({"x": "STRING", "conf": "TASK_CONFIG"})
    literal["inputDefinitions"]["parameters"]["x"]["literals"] = ["job", "other"]
    what = pipeline(
        {
            name: task("comp", parameters={"x": constant(value)}, **more)
            for name, value, more in (
                ("here", "job", {"triggerPolicy": about}),
                ("not", "other", {"triggerPolicy": about}),
                ("bad", "third", {}),
            )
        },
        {"comp": literal},
    )
    seen: dict[str, Any] = {}
    driver = EngineDriver(what, lambda node: seen.setdefault(node.path, node.inputs.parameters))
    assert driver.states == {"here": "succeeded", "not": "skipped", "bad": "failed"}
    assert driver.why["bad"] == "the input x: 'third' is not one of 'job', 'other'"
    assert seen == {"here": {"x": "job", "conf": {}}}


def test_cancel_ends_running_tasks() -> None:
    engine = Engine(pipeline({"a": task("comp"), "b": task("comp", ["a"])}, INT), Values())
    engine.begin()
    assert [(over.node.path, over.node.state) for over in engine.cancel()] == [("a", "canceled")]


def test_producers_of_the_parameters_of_a_task() -> None:
    """Through a pipeline within, a loop over what a task gave, and what all iterations gave."""
    inner = {
        "inputDefinitions": {"parameters": {"n": {"parameterType": "NUMBER_INTEGER"}}},
        "outputDefinitions": {"parameters": {"Output": {"parameterType": "NUMBER_INTEGER"}}},
        "dag": {
            "tasks": {
                "deep": task("comp", parameters={"x": {"componentInputParameter": "n"}}),
            },
            "outputs": {
                "parameters": {
                    "Output": {
                        "valueFromParameter": {
                            "producerSubtask": "deep",
                            "outputParameterKey": "Output",
                        }
                    }
                }
            },
        },
    }
    many = {"many": leaf({}, {"Output": "LIST"})}
    loop = task(
        "inner",
        parameters={"items": made("list")},
        parameterIterator={"items": {"inputParameter": "items"}, "itemInput": "n"},
    )
    tasks = {
        "list": task("many"),
        "loop": loop,
        "all": task("comp", parameters={"xs": made("loop")}),
        "alone": task("comp", parameters={"x": constant(1)}),
    }
    found: dict[str, set[str]] = {}

    def work(node: Node) -> Any:
        found[node.path] = {before.path for before in node.producers}
        return [5, 6] if node.path == "list" else 1

    EngineDriver(pipeline(tasks, {**INT, **many, "inner": inner}), work)
    assert found == {
        "list": set(),
        "loop/0/deep": {"list"},
        "loop/1/deep": {"list"},
        "all": {"loop/0/deep", "loop/1/deep"},
        "alone": set(),
    }
