"""Parameters and metrics of executions and pipeline runs, for comparison.

Metrics of an execution are the numbers in the `metrics.json` files that it wrote, and the scalars
of its TensorBoard event files; those of a run are the numbers that its tasks logged to
`Output[Metrics]`. Parameters are the options of the command, or the inputs of the run.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from clew.api.tensorboard_events import Series, read_scalars
from clew.documents.pipelines.runs import RunWithTasks
from clew.errors import ClewError
from clew.replay.repeat.parameters import list_parameters

if TYPE_CHECKING:
    from clew.api.executions import Execution
    from clew.api.project import Project

METRICS_FILE = "metrics.json"
EVENT_FILE = "events.out.tfevents."
_LARGEST_FILE = 64 << 20
"""Bytes: larger files are skipped."""
_LARGEST_INT = 1 << 64
_MOST_METRICS = 1000
"""Metrics of one execution."""
_LONGEST_NAME = 1000
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][-+]?\d{1,2})?")
_KFP_METRICS = ("system.Metrics", "system.ClassificationMetrics")


@dataclass(frozen=True)
class Measured:
    """One execution or pipeline run with its parameters and metrics."""

    id: str
    name: str | None
    state: str
    started: datetime | None
    parameters: dict[str, Any]
    metrics: dict[str, float]
    series: dict[str, Series] = field(default_factory=dict)
    """Metrics over time, from TensorBoard: step and value."""

    def as_json(self) -> dict[str, Any]:
        """Numbers that JSON cannot express, such as a loss that is not a number, become null."""
        names = ("id", "name", "state", "started", "parameters")
        fields = msgspec.to_builtins({name: getattr(self, name) for name in names})
        metrics = {name: v if math.isfinite(v) else None for name, v in self.metrics.items()}
        return {**fields, "metrics": metrics}


def collect_metrics(project: Project, ids: Iterable[str], *, limit: int) -> list[Measured]:
    """The named executions and runs; without names, those of the newest `limit` executions and
    `limit` runs that have metrics, newest first.

    Executions of tasks are left out then: their run has the metrics.
    """
    from clew.api.pipeline_artifacts import is_run

    if ids := list(ids):
        return [
            measure_run(project.pipelines.show(name))
            if is_run(name)
            else measure_execution(project, project.execution(name))
            for name in ids
        ]
    runs = [project.pipelines.show(run.uid) for run in project.pipelines.list()[-limit:]]
    tasks = {execution for run in runs for task in run.tasks for execution in task.attempts}
    executions = [one for one in project.executions() if one.id not in tasks][-limit:]
    measured = [*map(measure_run, runs)]
    measured += [measure_execution(project, execution) for execution in executions]
    found = [one for one in measured if one.metrics]
    return sorted(
        found, key=lambda one: one.started or datetime.min.replace(tzinfo=UTC), reverse=True
    )


def measure_execution(project: Project, execution: Execution) -> Measured:
    metrics: dict[str, float] = {}
    series: dict[str, Series] = {}
    for file in execution.files if execution.output_count else ():
        name = file.path.rsplit("/", 1)[-1]
        readable = file.written and file.digest and (file.size or 0) <= _LARGEST_FILE
        if not readable or not (name == METRICS_FILE or name.startswith(EVENT_FILE)):
            continue
        try:
            content = project.read(f"{execution.id}:{file.path}", most=_LARGEST_FILE)
        except ClewError:  # not stored, too large, or damaged: fsck reports it
            continue
        if name == METRICS_FILE:
            metrics.update(read_metrics_file(content))
        else:
            series.update(read_scalars(content))
    metrics.update({tag: values[-1][1] for tag, values in series.items()})
    return Measured(
        id=execution.id or execution.uid,
        name=execution.name,
        state=execution.state,
        started=execution.started,
        parameters={p.name: p.value or "true" for p in list_parameters(execution.command)},
        metrics=dict(list(metrics.items())[:_MOST_METRICS]),
        series=series,
    )


def parse_parameter(value: Any) -> Any:
    """The value of a parameter; a text that is a number, as a number: so 0.1 in a command and 0.1
    as the input of a pipeline are one value."""
    return json.loads(value) if isinstance(value, str) and _NUMBER.fullmatch(value) else value


def read_metrics_file(content: bytes) -> dict[str, float]:
    try:
        return dict(islice(_numbers(json.loads(content)), _MOST_METRICS))
    except (ValueError, RecursionError):
        return {}


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a JSON document, by their path: `train.loss`. Those with long paths are left
    out: of a small document, all paths together can be larger than the memory."""
    if len(name) > _LONGEST_NAME:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool) or not name:
        return
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST_INT):
        yield name, value


def measure_run(run: RunWithTasks) -> Measured:
    """A metric that several tasks log has the name of its task before it."""
    logged = [
        (task.name, metric, value)
        for task in run.tasks
        for artifacts in task.artifacts.values()
        for artifact in artifacts
        if artifact.type in _KFP_METRICS
        for metric, value in _numbers(artifact.metadata)
    ]
    times = Counter(metric for _, metric, _ in logged)
    metrics = {m if times[m] == 1 else f"{task}.{m}": value for task, m, value in logged}
    return Measured(
        id=run.id or run.uid,
        name=run.name,
        state=run.state,
        started=run.started,
        parameters=dict(run.inputs),
        metrics=metrics,
    )
