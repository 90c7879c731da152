"""The engine decides without IO: what happened goes in, what is to be done comes out."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.pipelines.irs import constant, leaf, made, pipeline, task

from clew.pipelines.engine import Engine, Outcome, Over, Run
from clew.pipelines.ir import Pipeline
from clew.pipelines.scopes import Node, Values

INT = {"comp": leaf({"x": "NUMBER_INTEGER?", "xs": "LIST?"}, {"Output": "NUMBER_INTEGER"})}


class Story:
    """Carries out what an engine says: `work` gives a task's output, or raises."""

    def __init__(
        self,
        what: Pipeline,
        work: Callable[[Node], Any] = lambda node: 1,
        *,
        inputs: dict[str, Any] | None = None,
        choose: Callable[[int], int] = lambda n: 0,
    ) -> None:
        self.engine = Engine(what, Values(inputs or {}), {"pipeline_job_name": "job"})
        self.ran: list[str] = []
        self.states: dict[str, str] = {}
        self.why: dict[str, str | None] = {}
        self.waits: list[float] = []
        self.most = 0
        ready: list[Run] = []
        said = self.engine.begin()
        while True:
            for one in said:
                if isinstance(one, Over):
                    assert one.node.path not in self.states
                    self.states[one.node.path] = one.node.state
                    self.why[one.node.path] = one.why
                else:
                    ready.append(one)
            self.most = max(self.most, len(ready))
            if not ready:
                break
            run = ready.pop(choose(len(ready)))
            self.ran.append(run.node.path)
            self.waits.append(run.wait)
            try:
                outcome = Outcome(outputs=Values({"Output": work(run.node)}))
            except RuntimeError as error:
                outcome = Outcome(error=str(error))
            said = self.engine.ended(run.node.path, outcome)
        assert self.engine.done


def fails(*names: str) -> Callable[[Node], int]:
    def work(node: Node) -> int:
        if node.task.name in names:
            raise RuntimeError("broken")
        return 1

    return work


# -- any graph

GRAPHS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 2**n - 1), min_size=n, max_size=n),
        st.sets(st.integers(0, n - 1)),
        st.sets(st.integers(0, n - 1)),
        st.integers(),
    )
)


@settings(max_examples=200)
@given(GRAPHS)
def test_any_graph_of_tasks(drawn: tuple[list[int], set[int], set[int], int]) -> None:
    masks, broken, always, seed = drawn
    before = [{b for b in range(a) if mask >> b & 1} for a, mask in enumerate(masks)]
    tasks = {}
    for a, names in enumerate(before):
        more = (
            {"triggerPolicy": {"strategy": "ALL_UPSTREAM_TASKS_COMPLETED"}} if a in always else {}
        )
        tasks[f"t{a}"] = task("comp", [f"t{b}" for b in sorted(names)], **more)
    story = Story(
        pipeline(tasks, INT),
        fails(*(f"t{a}" for a in broken)),
        choose=random.Random(seed).randrange,
    )
    expected: list[str] = []
    for a, names in enumerate(before):
        good = a in always or all(expected[b] == "succeeded" for b in names)
        expected.append("skipped" if not good else "failed" if a in broken else "succeeded")
    assert story.states == {f"t{a}": state for a, state in enumerate(expected)}
    for a, names in enumerate(before):  # nothing ran before what it needs
        for b in names:
            if {f"t{a}", f"t{b}"} <= set(story.ran):
                assert story.ran.index(f"t{b}") < story.ran.index(f"t{a}")
    assert (story.engine.failed is not None) is ("failed" in expected)


@given(st.lists(st.integers(-5, 5), max_size=6), st.integers(0, 3), st.integers())
def test_a_loop_collects_in_order_whatever_ends_first(
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

    story = Story(
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
    assert story.most <= max(limit or len(items), 1)
    assert {f"loop/{n}/one" for n in range(len(items))} == set(story.ran) - {"sum"}


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


def test_one_of_the_branches() -> None:
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
    story = Story(what, lambda node: 7)
    assert story.ran == ["branches/else-2/no", "after"]
    assert story.states["branches/if-1"] == "skipped"
    assert "does not hold" in (story.why["branches/if-1"] or "")
    assert story.engine.failed is None


def test_retries_wait_longer_each_time() -> None:
    policy = {"maxRetryCount": 2, "backoffDuration": "3s", "backoffFactor": 2.0}
    what = pipeline({"a": task("comp", retryPolicy=policy), "b": task("comp", ["a"])}, INT)
    story = Story(what, fails("a"))
    assert (story.ran, story.waits) == (["a", "a", "a"], [0.0, 3.0, 6.0])
    assert story.states == {"a": "failed", "b": "skipped"}
    left = [RuntimeError("once")]

    def work(node: Node) -> int:
        if left:
            raise left.pop()
        return 1

    assert Story(what, work).states == {"a": "succeeded", "b": "succeeded"}


def test_an_exit_task_is_told_how_it_went() -> None:
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

    story = Story(what, work)
    assert (told[0]["state"], told[0]["pipelineTaskName"]) == ("FAILED", "handler")
    assert "broken" in told[0]["error"]["message"]
    assert story.states == {"handler/work": "failed", "bye": "succeeded"}
    assert story.engine.failed is not None  # the run failed, though its last task did not


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
    Story(what, lambda node: seen.append(node.inputs.parameters) or 1)
    assert seen == [{}]


def test_a_missing_input_fails_the_task_and_says_so() -> None:
    what = pipeline({"a": task("comp")}, {"comp": leaf({"x": "NUMBER_INTEGER"})})
    story = Story(what)
    assert (story.ran, story.states) == ([], {"a": "failed"})
    assert story.why["a"] == "the input x has no value"


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

    assert Story(what, work).engine.failed is None
    assert seen[1] == {"n": 3, "text": "job: 3"}


def test_a_condition_knows_the_run_and_a_literal_its_values() -> None:
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
    story = Story(what, lambda node: seen.setdefault(node.path, node.inputs.parameters))
    assert story.states == {"here": "succeeded", "not": "skipped", "bad": "failed"}
    assert story.why["bad"] == "the input x: 'third' is none of 'job', 'other'"
    assert seen == {"here": {"x": "job", "conf": {}}}


def test_a_long_loop_of_nothing_but_skipped_tasks_ends() -> None:
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
    assert set(Story(what).states.values()) == {"skipped"}


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


def test_a_loop_begins_no_more_than_can_soon_be_run_and_keeps_nothing_of_what_is_over() -> None:
    what = long_loop({"one": task("comp", parameters=ITEM)}, INT)
    before = sum(isinstance(one, Node) for one in gc.get_objects())
    engine = Engine(what, Values({"xs": list(range(100))}), ahead=5)
    ready = [one for one in engine.begin() if isinstance(one, Run)]
    ran: list[str] = []
    most = 0
    while ready:
        assert len(ready) <= 5
        path = ready.pop(0).node.path
        ran.append(path)
        said = engine.ended(path, Outcome(outputs=Values({"Output": 1})))
        ready += [one for one in said if isinstance(one, Run)]
        del said
        most = max(most, sum(isinstance(one, Node) for one in gc.get_objects()))
    assert most <= before + 5 + 2
    assert engine.done
    assert set(ran) == {"beside", *(f"loop/{n}/one" for n in range(100))}


def test_iterations_that_wait_to_be_tried_again_keep_no_others_from_beginning() -> None:
    retry = {"maxRetryCount": 1, "backoffDuration": "3600s"}
    what = long_loop({"one": task("comp", parameters=ITEM, retryPolicy=retry)}, INT)
    engine = Engine(what, Values({"xs": list(range(20))}), ahead=2)
    fresh = [one for one in engine.begin() if isinstance(one, Run)]
    tried = set()
    while fresh:
        path = fresh.pop(0).node.path
        tried.add(path)
        said = engine.ended(path, Outcome(error="not yet"))
        fresh += [one for one in said if isinstance(one, Run) and one.attempt == 1]
    assert tried >= {f"loop/{n}/one" for n in range(20)}


def test_the_inner_of_two_loops_goes_on_first() -> None:
    """So what was begun comes to its end, and little is begun at once."""
    deep = {
        "inputDefinitions": {"parameters": {"item": {"parameterType": "NUMBER_INTEGER"}}},
        "dag": {"tasks": {"one": task("comp", parameters=ITEM)}},
    }
    inner = task(
        "comp-deep", parameterIterator={"itemInput": "item", "items": {"raw": "[1, 2, 3, 4]"}}
    )
    what = long_loop({"deep": inner}, {**INT, "comp-deep": deep})
    engine = Engine(what, Values({"xs": list(range(50))}), ahead=3)
    ready = [one for one in engine.begin() if isinstance(one, Run)]
    ran: list[str] = []
    while ready:
        node = ready.pop(0).node
        ran.append(node.path)
        begun = {path.split("/")[1] for path in ran if "/" in path}
        over = {outer for outer in begun if sum(f"loop/{outer}/" in path for path in ran) == 4}
        assert len(begun - over) <= 3
        said = engine.ended(node.path, Outcome(outputs=Values({"Output": 1})))
        ready += [one for one in said if isinstance(one, Run)]
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
    said = engine.ended("a", Outcome(outputs=made))
    runs = [one for one in said if isinstance(one, Run)]
    assert [(run.node.path, run.node.inputs.artifacts["m"]) for run in runs] == [
        ("loop/0/one", [{"uri": "/x"}]),
        ("loop/1/one", [{"uri": "/y"}]),
    ]


def test_canceling_ends_what_is_under_way() -> None:
    engine = Engine(pipeline({"a": task("comp"), "b": task("comp", ["a"])}, INT), Values())
    engine.begin()
    assert [(over.node.path, over.node.state) for over in engine.cancel()] == [("a", "canceled")]


def test_a_task_knows_whom_its_parameters_come_from() -> None:
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
        found[node.path] = {before.path for before in node.informed}
        return [5, 6] if node.path == "list" else 1

    Story(pipeline(tasks, {**INT, **many, "inner": inner}), work)
    assert found == {
        "list": set(),
        "loop/0/deep": {"list"},
        "loop/1/deep": {"list"},
        "all": {"loop/0/deep", "loop/1/deep"},
        "alone": set(),
    }
