"""What a run is given: the pipeline's parameters, as a user typed them, with their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.errors import UsageError
from clew.pipelines.engine.scopes import Values
from clew.pipelines.spec.ir import Pipeline
from clew.pipelines.spec.values import WrongType, convert, parse_value


def bind_text(pipeline: Pipeline, words: Mapping[str, str]) -> Values:
    """The values of a run's inputs: those that were given, and the defaults of the others."""
    return _bind(pipeline, words, parse_value)


def bind_values(pipeline: Pipeline, values: Mapping[str, Any]) -> Values:
    """As `bind`, of values that have types; texts are read as a user's words, since the stock
    command line sends nothing else for its schedules."""
    return _bind(pipeline, values, _parse_or_convert)


def _parse_or_convert(value: Any, kind: str, literals: Sequence[Any]) -> Any:
    return (parse_value if isinstance(value, str) else convert)(value, kind, literals)


def _bind(
    pipeline: Pipeline, words: Mapping[str, Any], read: Callable[[Any, str, Sequence[Any]], Any]
) -> Values:
    slots = pipeline.root.inputs
    if slots.artifacts:
        raise UsageError(
            f"{pipeline.name} needs the artifact {sorted(slots.artifacts)[0]} as an input",
            hint="let the pipeline import it: dsl.importer",
        )
    known = ", ".join(slots.parameters) or "it has none"
    for name in words:
        if name not in slots.parameters:
            raise UsageError(f"{pipeline.name} has no parameter {name}", hint=f"it has: {known}")
    found = Values()
    for name, slot in slots.parameters.items():
        try:
            value = read(words[name], slot.type, slot.literals) if name in words else slot.default
        except WrongType as error:
            raise UsageError(f"the parameter {name}: {error}", hint=f"-p {name}=VALUE") from error
        if value is None and slot.type == "TASK_FINAL_STATUS":
            value = _no_task_status(pipeline)
        if value is not None:
            found.parameters[name] = value
        elif not slot.optional:
            raise UsageError(f"{pipeline.name} needs the parameter {name}", hint=f"-p {name}=VALUE")
    return found


def _no_task_status(pipeline: Pipeline) -> dict[str, Any]:
    """The status for a component outside an exit handler: no task ran before it, so none failed."""
    return {
        "state": "SUCCEEDED",
        "pipelineJobResourceName": "",
        "pipelineTaskName": pipeline.name,
        "error": {},
    }
