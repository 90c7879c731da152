"""Bind the arguments of a run to the parameters of its pipeline."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.errors import UsageError
from clew.pipelines.spec.ir import Pipeline
from clew.pipelines.spec.values import Values, WrongType, convert, parse_value


def bind_text(pipeline: Pipeline, arguments: Mapping[str, str]) -> Values:
    """Parse arguments that a user typed, and add the defaults of the others."""
    return _bind(pipeline, arguments, parse_value)


def bind_values(pipeline: Pipeline, values: Mapping[str, Any]) -> Values:
    """As `bind_text`, for typed values. Strings are parsed too, since the kfp command line sends
    only strings for its schedules."""
    return _bind(pipeline, values, _parse_or_convert)


def _parse_or_convert(value: Any, kind: str, literals: Sequence[Any]) -> Any:
    return (parse_value if isinstance(value, str) else convert)(value, kind, literals)


def _bind(
    pipeline: Pipeline, arguments: Mapping[str, Any], read: Callable[[Any, str, Sequence[Any]], Any]
) -> Values:
    slots = pipeline.root.inputs
    if slots.artifacts:
        raise UsageError(
            f"{pipeline.name} requires the artifact {sorted(slots.artifacts)[0]} as an input",
            hint="let the pipeline import it: dsl.importer",
        )
    known = ", ".join(slots.parameters) or "it has none"
    for name in arguments:
        if name not in slots.parameters:
            raise UsageError(f"{pipeline.name} has no parameter {name}", hint=f"it has: {known}")
    values = Values()
    for name, slot in slots.parameters.items():
        try:
            value = slot.default
            if name in arguments:
                value = read(arguments[name], slot.type, slot.literals)
        except WrongType as error:
            raise UsageError(f"the parameter {name}: {error}", hint=f"-p {name}=VALUE") from error
        if value is None and slot.type == "TASK_FINAL_STATUS":
            value = _no_task_status(pipeline)
        if value is not None:
            values.parameters[name] = value
        elif not slot.optional:
            raise UsageError(
                f"{pipeline.name} requires the parameter {name}", hint=f"-p {name}=VALUE"
            )
    return values


def _no_task_status(pipeline: Pipeline) -> dict[str, Any]:
    """The status for a component outside an exit handler: no task ran before it, so none failed."""
    return {
        "state": "SUCCEEDED",
        "pipelineJobResourceName": "",
        "pipelineTaskName": pipeline.name,
        "error": {},
    }
