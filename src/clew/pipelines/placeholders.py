"""Placeholders: `{{$.…}}` in a constant stands for an input of its task, or a fact of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from clew.pipelines.values import text

RUN = frozenset(
    {
        "pipeline_job_name", "pipeline_job_resource_name", "pipeline_job_uuid", "pipeline_root",
        "pipeline_job_create_time_utc", "pipeline_job_schedule_time_utc",
    }
)  # fmt: skip
"""Facts of a run."""
TASK = frozenset({"pipeline_task_name", "pipeline_task_uuid"})

_ANY = re.compile(r"\{\{\$((?:(?!\}\}).)*)\}\}", re.DOTALL)
_PARAMETER = re.compile(r"\.inputs\.parameters\[(['\"])(.*?)\1\]")
_ARTIFACT = re.compile(r"\.inputs\.artifacts\[(['\"])(.*?)\1\]\.(uri|path)")


class NoValue(ValueError):
    """A placeholder names an input that has no value."""


def unknown(value: Any) -> str | None:
    """The first placeholder, at any depth of a constant, that nothing here can stand for."""
    if isinstance(value, dict):
        return next(filter(None, map(unknown, value.values())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, map(unknown, value)), None)
    if isinstance(value, str):
        for found in _ANY.finditer(value):
            inside = found[1]
            known = inside[1:] in RUN | TASK
            if not known and not _PARAMETER.fullmatch(inside) and not _ARTIFACT.fullmatch(inside):
                return found[0]
    return None


def fill(
    value: Any,
    parameters: Mapping[str, Any],
    artifacts: Mapping[str, list[dict[str, Any]]],
    facts: Mapping[str, str],
) -> Any:
    """The constant with each placeholder's value in its place; alone, it keeps its type."""
    if isinstance(value, dict):
        return {name: fill(one, parameters, artifacts, facts) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [fill(one, parameters, artifacts, facts) for one in value]
    if not isinstance(value, str):
        return value

    def found(match: re.Match[str]) -> Any:
        inside = match[1]
        if named := _PARAMETER.fullmatch(inside):
            if parameters.get(named[2]) is None:
                raise NoValue(f"{match[0]} has no value")
            return parameters[named[2]]
        if named := _ARTIFACT.fullmatch(inside):
            if not artifacts.get(named[2]):
                raise NoValue(f"{match[0]} has no value")
            return artifacts[named[2]][0]["uri"]
        return facts.get(inside[1:], match[0])

    if whole := _ANY.fullmatch(value):
        return found(whole)
    return _ANY.sub(lambda match: text(found(match)), value)
