"""What a container component is called with: every placeholder, and structures of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.pipelines.engine.input_resolution import BadInput
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.command_words import InvalidStructure, find_unknown_in_word
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.executors import parse_executor
from clew.pipelines.spec.ir import ArtifactSlot, Command, Component, Parameter, Slots, Task
from clew.pipelines.spec.values import Values
from clew.pipelines.tasks.attempt_factory import (
    build_command,
    build_environment,
    resolve_image,
)

DATA = {
    "name": "data",
    "uri": "gs://bucket/data",
    "type": {"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"},
    "metadata": {"rows": 3, "of": {"a": [1]}},
}
GIVEN = {
    "inputs": {"parameterValues": {"n": 1}},
    "outputs": {
        "parameters": {"size": {"outputFile": "/t/size"}},
        "artifacts": {"model": {"artifacts": [{"uri": "/t/model", "metadata": {}}]}},
        "outputFile": "/t/executor_output.json",
    },
}
OUTPUTS = Slots(
    {"size": Parameter("NUMBER_INTEGER")}, {"model": ArtifactSlot("system.Model", "0.0.1")}
)
FACTS = {"pipeline_job_name": "job-r1", "pipeline_job_uuid": "f00", "pipeline_root": "/runs/r1"}


def node(parameters: dict[str, Any], **more: Any) -> Node:
    slots = Slots({"n": Parameter("NUMBER_INTEGER"), "d": Parameter("STRING", True, "plain")})
    body = Command("i", (), (), {"A": "{{$.inputs.parameters['n']}}!"}, "exec.container")
    task = Task("make", "comp-make", {}, {}, frozenset())
    inputs = Values(parameters, more.get("artifacts", {"data": [DATA, {**DATA, "uri": "/x"}]}))
    made = Node(task, Component("comp-make", slots, OUTPUTS, body), "loop/make", inputs=inputs)
    made.named_inputs = Values(more.get("given", {}))
    return made


def called(*templates: str, **parameters: Any) -> list[str]:
    return build_command(templates, node(parameters), GIVEN, FACTS)


@pytest.mark.parametrize(
    ("template", "word"),
    [
        ("plain", "plain"),
        ("{{$.inputs.parameters['n']}}", "7"),
        ("-n={{$.inputs.parameters['n']}};", "-n=7;"),
        ("{{$.inputs.parameters['f']}}", "2"),
        ("{{$.inputs.parameters['b']}}", "true"),
        ("{{$.inputs.parameters['many']}}", '[1, "é"]'),
        ("{{$.inputs.parameters['d']}}", "plain"),  # its default
        ("{{$.inputs.artifacts['data'].uri}}", "gs://bucket/data"),
        ("{{$.inputs.artifacts['data'].path}}", "/gcs/bucket/data"),
        ("{{$.inputs.artifacts['data'].metadata}}", '{"rows": 3, "of": {"a": [1]}}'),
        ("{{$.inputs.artifacts['data'].metadata['rows']}}", "3"),
        ("{{$.inputs.artifacts['data']}}", json.dumps([DATA, {**DATA, "uri": "/x"}])),
        ("{{$.outputs.artifacts['model'].uri}}", "/t/model"),
        ("{{$.outputs.artifacts['model'].path}}/x", "/t/model/x"),
        ("{{$.outputs.parameters['size'].output_file}}", "/t/size"),
        ("{{$.outputs.output_file}}", "/t/executor_output.json"),
        ("{{$.pipeline_job_name}} {{$.pipeline_task_name}}", "job-r1 make"),
        ("{{$.pipeline_root}}/{{$.pipeline_job_uuid}}", "/runs/r1/f00"),
        ("{{$.pipeline_task_uuid}}", "f00/loop/make"),
        ("{{$}}", json.dumps(GIVEN)),
        ("{{$x}} {{ $ }} {{$", "{{$x}} {{ $ }} {{$"),
    ],
)
def test_placeholders(template: str, word: str) -> None:
    found = called(template, n=7, f=2.0, b=True, many=[1, "é"])
    assert found == [word]
    assert find_unknown_in_word(template, OUTPUTS) is None


def test_structures_are_one_word_or_several() -> None:
    name = "{{$.inputs.parameters['n']}}"
    inner = {"IfPresent": {"InputName": "n", "Then": {"Concat": ["<", name, ">"]}}}
    concat = json.dumps({"Concat": ["a", inner, {"Concat": ["b", "c"]}]})
    several = json.dumps(
        {"IfPresent": {"InputName": "n", "Then": ["--n", inner, "z"], "Else": ["--none", "x y"]}}
    )
    nothing = json.dumps({"IfPresent": {"InputName": "d", "Then": "--d"}})
    file = json.dumps({"IfPresent": {"InputName": "data", "Then": "--data"}})
    assert called(concat, several, nothing, file, n=1) == ["a<1>bc", "--n", "<1>", "z", "--data"]
    assert called(concat, several, nothing) == ["abc", "--none", "x y"]


@given(st.text())
def test_values_are_not_parsed_as_placeholders_or_structures(text: str) -> None:
    value = text + '{"Concat": ["{{$.pipeline_root}}"]}' + text
    assert called("{{$.inputs.parameters['n']}}", n=value) == [value]
    if text:
        concat = json.dumps({"Concat": ["", "{{$.inputs.parameters['n']}}"]})
        assert called(concat, n=text) == [text]


def test_missing_values_are_errors() -> None:
    for template in (
        "{{$.inputs.parameters['n']}}",
        "{{$.inputs.artifacts['none'].path}}",
        "{{$.inputs.artifacts['data'].metadata['none']}}",
    ):
        with pytest.raises(BadInput):
            called(template)


def test_variables_and_image_use_undeclared_inputs() -> None:
    made = node({"n": 1}, given={"pipelinechannel--tag": "v2"})
    body = made.component.body
    assert isinstance(body, Command)
    assert build_environment(body.environment, made, FACTS) == {"A": "1!"}
    tagged = Command("x:{{$.inputs.parameters['pipelinechannel--tag']}}", (), (), {}, "")
    assert resolve_image(tagged, made, FACTS) == "x:v2"


@pytest.mark.parametrize(
    "word",
    [
        '{"Concat": ["a"',
        '{"Concat": [{"Other": 1}]}',
        '{"IfPresent": {"InputName": "n"}}',
        '{"IfPresent": {"Then": 3, "InputName": "n"}}',
        '{"Concat": 1}',
    ],
)
def test_malformed_structures(word: str) -> None:
    with pytest.raises(InvalidStructure):
        find_unknown_in_word(word, OUTPUTS)


@pytest.mark.parametrize(
    ("container", "place"),
    [
        ({"command": ["a", "{{$.outputs.parameters['none'].output_file}}"]}, "command[1]"),
        ({"args": ['{"Concat": ["{{$.what}}"]}']}, "args[0]"),
        ({"args": ['{"Concat": 7}']}, "args[0]"),
        ({"image": "{{$.what}}"}, "image"),
        ({"image": "argostub/createpvc"}, "image"),
    ],
)
def test_errors_name_the_location(container: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPipeline) as refused:
        parse_executor(Part({"container": {"image": "i", **container}}, "exec"), OUTPUTS, [])
    assert refused.value.message.startswith(f"exec.container.{place}: ")
