"""Compare up to ten executions and pipeline runs: `GET comparison`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.api.local.comparison.activity_properties import describe_execution, describe_run
from clew.api.local.comparison.table import Properties, build_sections
from clew.api.metric_collection import Measured, measure_execution, measure_run
from clew.api.pipeline_artifacts import is_run
from clew.api.tensorboard_events import Series
from clew.documents.comparisons.side_by_side import ActivityComparison, ComparedEntry, MetricSeries
from clew.errors import NotFound

if TYPE_CHECKING:
    from clew.api.local.project import LocalProject

_MOST_SERIES = 100
_MOST_POINTS = 1000
"""Points of one series; a plot is not wider."""


def compare_activities(project: LocalProject, ids: Sequence[str]) -> ActivityComparison:
    """Compare the activities, property by property."""
    entries: list[ComparedEntry] = []
    columns: list[Properties] = []
    series: dict[str, list[MetricSeries]] = {}
    for text in ids:
        measured, properties, seconds = _describe(project, text)
        columns.append(properties)
        entries.append(
            ComparedEntry(
                id=measured.id,
                name=measured.name,
                state=measured.state,
                started=measured.started,
                seconds=seconds,
            )
        )
        for name, points in list(measured.series.items())[:_MOST_SERIES]:
            series.setdefault(name, []).append(
                MetricSeries(id=measured.id, points=_thin_out(points))
            )
    return ActivityComparison(
        entries=tuple(entries),
        sections=build_sections(columns),
        series={name: tuple(found) for name, found in list(series.items())[:_MOST_SERIES]},
    )


def _describe(project: LocalProject, text: str) -> tuple[Measured, Properties, float | None]:
    """An execution, or a run, by id or uid."""
    try:
        execution = None if is_run(text) else project.execution(text)
    except NotFound:
        if len(text) != 32:
            raise
        execution = None  # perhaps the uid of a run
    if execution is not None:
        measured = measure_execution(project, execution)
        return measured, describe_execution(project, measured), execution.seconds
    run = project.pipelines.show(text)
    measured = measure_run(run)
    return measured, describe_run(project, measured, run), run.seconds


def _thin_out(points: Series) -> tuple[tuple[float, float | None], ...]:
    """At most _MOST_POINTS of the points, and the last one."""
    step = max(1, math.ceil(len(points) / _MOST_POINTS))
    chosen = points[::step]
    if points and chosen[-1] != points[-1]:
        chosen.append(points[-1])
    return tuple((float(at), value if math.isfinite(value) else None) for at, value in chosen)
