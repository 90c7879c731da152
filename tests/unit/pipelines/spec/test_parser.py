"""What a compiled pipeline says, and what is refused with its place before anything runs."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.pipelines.compiled_pipelines import constant, document, leaf, made, task, text

from clew.errors import UsageError
from clew.pipelines.spec.arguments import bind_text
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Constant, FromTask, Input, Retry
from clew.pipelines.spec.parser import parse_pipeline


def base() -> dict[str, Any]:
    return document(
        {
            "a": task("comp-a", parameters={"x": constant(2.0)}),
            "b": task("comp-a", parameters={"x": made("a")}),
        },
        {"comp-a": leaf({"x": "NUMBER_INTEGER"}, {"Output": "NUMBER_INTEGER"})},
    )


def test_parse_pipeline() -> None:
    found = parse_pipeline(text(base())).root.body
    tasks = found.tasks  # type: ignore[union-attr]
    assert tasks["a"].parameters == {"x": Input(Constant(2))}
    assert tasks["b"].parameters == {"x": Input(FromTask("a", "Output"))}
    assert tasks["b"].after == {"a"}  # though nothing but the input names it


def test_retries() -> None:
    policy = {"maxRetryCount": 3, "backoffDuration": "2s", "backoffFactor": 3.0}
    written = base()
    written["root"]["dag"]["tasks"]["a"]["retryPolicy"] = policy
    retry = parse_pipeline(text(written)).root.body.tasks["a"].retry  # type: ignore[union-attr]
    assert retry == Retry(3, 2.0, 3.0, 3600.0)
    assert [retry.delay_after(n) for n in (1, 2, 3, 400)] == [2.0, 6.0, 18.0, 3600.0]


def test_a_platform_document_that_only_places_pods() -> None:
    platform = {
        "platforms": {
            "kubernetes": {
                "deploymentSpec": {"executors": {"exec": {"podMetadata": {"labels": {"a": "b"}}}}}
            }
        }
    }
    assert parse_pipeline(text(base(), platform)).name == "p"


def _task(**more: Any) -> Callable[[dict[str, Any]], None]:
    return lambda written: written["root"]["dag"]["tasks"]["b"].update(more)


def _container(**more: Any) -> Callable[[dict[str, Any]], None]:
    def change(written: dict[str, Any]) -> None:
        written["deploymentSpec"]["executors"]["exec"]["container"].update(more)

    return change


def _at(*way: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(written: dict[str, Any]) -> None:
        for step in way[:-1]:
            written = written.setdefault(step, {})
        written[way[-1]] = value

    return change


SELECTOR = "parameterExpressionSelector"
PARAMETER = ("components", "comp-a", "inputDefinitions", "parameters", "x")
LITERAL = {"parameterType": "STRING", "literals": ["small", "large"]}
FIRST = ("root", "dag", "tasks", "a")


@pytest.mark.parametrize(
    ("change", "place", "why"),
    [
        (_task(newThing=1), "root.dag.tasks.b.newThing", "not supported"),
        (
            _task(triggerPolicy={"condition": "rm -rf"}),
            "root.dag.tasks.b.triggerPolicy.condition",
            "a value",
        ),
        (_task(triggerPolicy={"strategy": "MAYBE"}), "root.dag.tasks.b.triggerPolicy.strategy", ""),
        (_task(componentRef={"name": "comp-z"}), "root.dag.tasks.b", "comp-z"),
        (_task(dependentTasks=["z"]), "root.dag.tasks.b", "no task z"),
        (
            _task(inputs={"parameters": {"x": constant("{{$.workspace_path}}")}}),
            "root.dag.tasks.b.inputs.parameters.x.runtimeValue.constant",
            "no workspace",
        ),
        (
            _task(inputs={"parameters": {"x": made("a") | {SELECTOR: "1+1"}}}),
            f"root.dag.tasks.b.inputs.parameters.x.{SELECTOR}",
            "1+1",
        ),
        (
            _container(command=["echo", "{{$.what}}"], args=[]),
            "deploymentSpec.executors.exec.container.command[1]",
            "what",
        ),
        (
            _at("deploymentSpec", "executors", "exec", value={"customJob": {}}),
            "deploymentSpec.executors.exec.customJob",
            "",
        ),
        (
            _at(*PARAMETER, value={"parameterType": "TASK_THOUGHTS"}),
            ".".join((*PARAMETER, "parameterType")),
            "TASK_THOUGHTS",
        ),
        (
            _at(*PARAMETER, value={"parameterType": "NUMBER_INTEGER", "literals": [1, "b"]}),
            ".".join((*PARAMETER, "literals")),
            "'b' is not an integer",
        ),
        (
            _at(*PARAMETER, value={**LITERAL, "defaultValue": "huge"}),
            ".".join((*PARAMETER, "defaultValue")),
            "'huge' is not one of 'small', 'large'",
        ),
        (
            _task(triggerPolicy={"condition": "inputs.parameter_values['x'] == '{{$.what}}'"}),
            "root.dag.tasks.b.triggerPolicy.condition",
            "what",
        ),
        (_at("schemaVersion", value="1.0"), "schemaVersion", ""),
        (_at("extra", value=1), "extra", ""),
        (_at(*FIRST, "dependentTasks", value=["b"]), ".".join(FIRST), "waits"),
    ],
)
def test_errors_name_the_location(
    change: Callable[[dict[str, Any]], None], place: str, why: str
) -> None:
    written = base()
    change(written)
    with pytest.raises(InvalidPipeline) as refused:
        parse_pipeline(text(written))
    assert refused.value.message.startswith(f"{place}: ")
    assert why in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("name", ["../../x", "/x", "..", "a\x1b[31m", "a\0", "a" * 5000])
def test_names_that_would_lead_out_of_the_directory_of_a_run(name: str) -> None:
    outputs = {"Output": "NUMBER_INTEGER", name: "STRING"}
    for written in (
        document({name: task("comp-a")}, {"comp-a": leaf({}, {})}),
        document({"a": task("comp-a")}, {"comp-a": leaf({}, outputs)}),
    ):
        with pytest.raises(InvalidPipeline, match="is not a name"):
            parse_pipeline(text(written))


def test_unknown_platform_settings_are_refused() -> None:
    for executors, place in (
        ({"exec": {"initContainers": []}}, "exec.initContainers: is not supported"),
        ({"other": {}}, "executors.other: no such executor"),
    ):
        platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
        with pytest.raises(InvalidPipeline, match=place):
            parse_pipeline(text(base(), platform))


@pytest.mark.parametrize("content", ["", "a: [", "- 1", "a: 1", "\0"])
def test_documents_that_are_not_a_pipeline(content: str) -> None:
    with pytest.raises(InvalidPipeline):
        parse_pipeline(content)


def test_parameters_are_bound_by_their_types() -> None:
    written = base()
    written["root"]["inputDefinitions"] = {
        "parameters": {
            "n": {"parameterType": "NUMBER_INTEGER", "defaultValue": 4.0, "isOptional": True},
            "name": {"parameterType": "STRING"},
            "rest": {"parameterType": "LIST", "isOptional": True},
        }
    }
    found = parse_pipeline(text(written))
    assert bind_text(found, {"name": "7"}).parameters == {"n": 4, "name": "7"}
    assert bind_text(found, {"name": "", "n": "5", "rest": "[1]"}).parameters == {
        "n": 5,
        "name": "",
        "rest": [1],
    }
    for words in ({}, {"name": "a", "n": "x"}, {"name": "a", "other": "1"}):
        with pytest.raises(UsageError):
            bind_text(found, words)


def test_a_literal_is_one_of_its_values() -> None:
    written = base()
    written["root"]["inputDefinitions"] = {"parameters": {"size": LITERAL}}
    found = parse_pipeline(text(written))
    assert bind_text(found, {"size": "large"}).parameters == {"size": "large"}
    with pytest.raises(UsageError, match="'huge' is not one of 'small', 'large'"):
        bind_text(found, {"size": "huge"})
