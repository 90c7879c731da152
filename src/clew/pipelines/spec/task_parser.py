"""Parse one task of a compiled pipeline: its inputs, dependencies, loop and retry policy."""

import json
import re
from typing import Any

from clew.pipelines.spec import ir
from clew.pipelines.spec.conditions import Condition, InvalidCondition, parse_condition
from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.placeholders import find_unknown
from clew.pipelines.spec.values import normalize_numbers

_MEMBER = re.compile(r"""parseJson\(string_value\)\[(["'])(.*)\1\]""")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")
_ALWAYS = "ALL_UPSTREAM_TASKS_COMPLETED"
_STRATEGIES = ("TRIGGER_STRATEGY_UNSPECIFIED", "ALL_UPSTREAM_TASKS_SUCCEEDED", _ALWAYS, None, "")


def parse_task(name: str, part: Part) -> ir.Task:
    part.allow_only(
        "taskInfo", "componentRef", "inputs", "dependentTasks", "cachingOptions", "triggerPolicy",
        "parameterIterator", "artifactIterator", "iteratorPolicy", "retryPolicy",
    )  # fmt: skip
    inside = part.part("inputs")
    inside.allow_only("parameters", "artifacts")
    parameters = {key: parse_parameter(found) for key, found in inside.parts("parameters")}
    artifacts = {key: _parse_artifact(found) for key, found in inside.parts("artifacts")}
    sources = [one.source for one in (*parameters.values(), *artifacts.values())]
    named = {source.task for source in sources if isinstance(source, ir.FromTask | ir.FinalStatus)}
    caching = part.part("cachingOptions")
    caching.allow_only("enableCache", "cacheKey")
    trigger = part.part("triggerPolicy")
    trigger.allow_only("condition", "strategy")
    if trigger.get("strategy") not in _STRATEGIES:
        raise trigger.error("strategy", f"{trigger.get('strategy')} is not known")
    return ir.Task(
        name=name,
        component=part.part("componentRef").string("name"),
        parameters=parameters,
        artifacts=artifacts,
        after=frozenset(part.strings("dependentTasks")) | named,
        condition=_parse_condition(trigger),
        run_always=trigger.get("strategy") == _ALWAYS,
        loop=_parse_loop(part),
        retry=_parse_retry(part.part("retryPolicy")),
        reuse=bool(caching.get("enableCache")),
        cache_key=str(caching.get("cacheKey") or ""),
    )


def parse_constant(part: Part, name: str) -> Any:
    """A constant, with its placeholders checked and its integral doubles as integers."""
    value = part.get(name)
    if (unknown := find_unknown(value)) is not None:
        raise part.error(name, f"the placeholder {unknown} is not supported")
    return normalize_numbers(value)


def parse_parameter(part: Part) -> ir.Input:
    part.allow_only(
        "runtimeValue", "componentInputParameter", "taskOutputParameter", "taskFinalStatus",
        "parameterExpressionSelector",
    )  # fmt: skip
    key = None
    if (selector := part.get("parameterExpressionSelector")) is not None:
        found = _MEMBER.fullmatch(str(selector))
        if found is None:
            raise part.error("parameterExpressionSelector", f"{selector} is not supported")
        key = found[2]
    if "componentInputParameter" in part:
        return ir.Input(ir.FromInput(part.string("componentInputParameter")), key)
    if "taskOutputParameter" in part:
        source = part.part("taskOutputParameter")
        source.allow_only("producerTask", "outputParameterKey")
        produced = ir.FromTask(source.string("producerTask"), source.string("outputParameterKey"))
        return ir.Input(produced, key)
    if "taskFinalStatus" in part:
        return ir.Input(ir.FinalStatus(part.part("taskFinalStatus").string("producerTask")), key)
    value = part.part("runtimeValue")
    value.allow_only("constant")
    return ir.Input(ir.Constant(parse_constant(value, "constant")), key)


def _parse_artifact(part: Part) -> ir.Input:
    part.allow_only("componentInputArtifact", "taskOutputArtifact")
    if "componentInputArtifact" in part:
        return ir.Input(ir.FromInput(part.string("componentInputArtifact")))
    source = part.part("taskOutputArtifact")
    source.allow_only("producerTask", "outputArtifactKey")
    return ir.Input(ir.FromTask(source.string("producerTask"), source.string("outputArtifactKey")))


def _parse_condition(trigger: Part) -> Condition | None:
    text = trigger.get("condition")
    if not text:
        return None
    parse_constant(trigger, "condition")
    try:
        return parse_condition(str(text))
    except InvalidCondition as error:
        raise trigger.error("condition", str(error)) from error


def _parse_loop(part: Part) -> ir.Loop | None:
    policy = part.part("iteratorPolicy")
    policy.allow_only("parallelismLimit")
    limit = int(policy.get("parallelismLimit") or 0)
    for name, key, artifacts in (
        ("parameterIterator", "inputParameter", False),
        ("artifactIterator", "inputArtifact", True),
    ):
        if name not in part:
            continue
        iterator = part.part(name)
        iterator.allow_only("items", "itemInput")
        items = iterator.part("items")
        items.allow_only("raw", key)
        item = iterator.string("itemInput")
        if key in items:
            return ir.Loop(item, source=items.string(key), artifacts=artifacts, limit=limit)
        return ir.Loop(item, items=_parse_items(items), limit=limit)
    return None


def _parse_items(items: Part) -> tuple[Any, ...]:
    try:
        found = json.loads(items.string("raw"))
    except ValueError as error:
        raise items.error("raw", "is not JSON") from error
    if not isinstance(found, list):
        raise items.error("raw", "is not a list")
    if (unknown := find_unknown(found)) is not None:
        raise items.error("raw", f"the placeholder {unknown} is not supported")
    return tuple(normalize_numbers(found))


def _parse_retry(part: Part) -> ir.Retry:
    part.allow_only("maxRetryCount", "backoffDuration", "backoffFactor", "backoffMaxDuration")
    if not part:
        return ir.Retry()
    return ir.Retry(
        max_retries=int(part.get("maxRetryCount") or 0),
        backoff=_parse_duration(part, "backoffDuration", 0.0),
        factor=float(part.get("backoffFactor") or 2.0),
        max_backoff=_parse_duration(part, "backoffMaxDuration", 3600.0),
    )


def _parse_duration(part: Part, name: str, default: float) -> float:
    text = part.get(name)
    if text is None:
        return default
    found = _SECONDS.fullmatch(str(text))
    if found is None:
        raise part.error(name, f"{text} is not a time in seconds")
    return float(found[1])
