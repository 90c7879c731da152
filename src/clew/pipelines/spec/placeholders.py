"""Placeholders: `{{$.…}}` in a text stands for an input of the task, or a fact of the run."""

import re
from collections.abc import Container, Mapping
from typing import Any

from clew.pipelines.spec.values import to_text

RUN_FACTS = frozenset(
    {
        "pipeline_job_name", "pipeline_job_resource_name", "pipeline_job_uuid", "pipeline_root",
        "pipeline_job_create_time_utc", "pipeline_job_schedule_time_utc", "workspace_path",
    }
)  # fmt: skip
"""Names of the facts of a run."""
TASK_FACTS = frozenset({"pipeline_task_name", "pipeline_task_uuid"})

_PLACEHOLDER = re.compile(r"\{\{\$((?:\.(?:(?!\}\}).)*)?)\}\}", re.DOTALL)
_PARAMETER = re.compile(r"\.inputs\.parameters\[(['\"])(.*?)\1\]")
_ARTIFACT = re.compile(
    r"\.inputs\.artifacts\[(['\"])(.*?)\1\](?:\.(uri|path|metadata))?(?:\[(['\"])(.*?)\4\])?"
)
_SCHEME_DIRECTORIES = {"gs://": "/gcs/", "s3://": "/s3/", "minio://": "/minio/"}


class MissingValue(ValueError):
    """A placeholder names an input without a value."""


def find_unknown(value: Any, known: Container[str] = ()) -> str | None:
    """The first placeholder, at any depth, that is not supported. `known`: names of further facts,
    in addition to those of the run and the task."""
    if isinstance(value, dict):
        return next(filter(None, (find_unknown(one, known) for one in value.values())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, (find_unknown(one, known) for one in value)), None)
    if isinstance(value, str):
        for found in _PLACEHOLDER.finditer(value):
            inside = found[1]
            fact = inside[1:] in RUN_FACTS | TASK_FACTS or inside[1:] in known
            if not fact and not _PARAMETER.fullmatch(inside) and not _ARTIFACT.fullmatch(inside):
                return found[0]
    return None


def artifact_path(artifact: Mapping[str, Any]) -> str:
    """The path of its file, as the SDK computes it."""
    if artifact.get("custom_path"):
        return str(artifact["custom_path"])
    uri = str(artifact["uri"])
    if uri.startswith("oci://"):
        return f"/oci/{uri[6:].replace('/', '_')}/models"
    for scheme, directory in _SCHEME_DIRECTORIES.items():
        if uri.startswith(scheme):
            return directory + uri[len(scheme) :]
    return uri


def fill(
    value: Any,
    parameters: Mapping[str, Any],
    artifacts: Mapping[str, list[dict[str, Any]]],
    facts: Mapping[str, str],
) -> Any:
    """Replace the placeholders in a constant. A text that is one placeholder becomes its value,
    with the value's type."""
    if isinstance(value, dict):
        return {name: fill(one, parameters, artifacts, facts) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [fill(one, parameters, artifacts, facts) for one in value]
    if not isinstance(value, str):
        return value

    def look_up(match: re.Match[str]) -> Any:
        inside = match[1]
        if named := _PARAMETER.fullmatch(inside):
            if parameters.get(named[2]) is None:
                raise MissingValue(f"{match[0]} has no value")
            return parameters[named[2]]
        if named := _ARTIFACT.fullmatch(inside):
            if not artifacts.get(named[2]):
                raise MissingValue(f"{match[0]} has no value")
            return _artifact_field(artifacts[named[2]], named[3], named[5], match[0])
        return facts.get(inside[1:], match[0])

    if whole := _PLACEHOLDER.fullmatch(value):
        return look_up(whole)
    return _PLACEHOLDER.sub(lambda match: to_text(look_up(match)), value)


def _artifact_field(
    found: list[dict[str, Any]], what: str | None, key: str | None, name: str
) -> Any:
    if what is None:
        return found
    if what == "path":
        return artifact_path(found[0])
    if key is None:
        return found[0].get(what, {})
    if key not in found[0].get(what, {}):
        raise MissingValue(f"{name} has no value")
    return found[0][what][key]
