"""Executions and pipeline runs in one table, and the overview of the first page."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import Depends, Query, Request
from msgspec import structs
from pydantic import StringConstraints

from clew.api.local.comparison.comparison import compare_activities
from clew.api.local.project import LocalProject
from clew.documents.comparisons.side_by_side import ActivityComparison
from clew.documents.project.activities import (
    ActiveWorkload,
    Activity,
    ActivityGroups,
    ActivityPage,
    ActivityState,
    ActivityType,
    Counts,
    MainMetric,
    Overview,
    Result,
)
from clew.documents.workloads.workload import Quota
from clew.errors import ClewError
from clew.server.catalogue.activities.conditions import Conditions, parse_conditions
from clew.server.catalogue.activities.groups import (
    group_activities,
    is_in_group,
    parse_grouping,
)
from clew.server.catalogue.activities.index import ActivityIndex
from clew.server.catalogue.activities.selection import (
    count_activities,
    count_by_state,
    list_names,
    select_activities,
)
from clew.server.catalogue.activities.sort_order import Order, parse_sorting
from clew.server.server_state import Service
from clew.server.storage_meter import StorageMeter
from clew.server.v1.dependencies import Limit, ProjectDep, ServiceDep, Text
from clew.server.v1.document_router import DocumentRouter
from clew.server.v1.records.executions import Since, parse_time
from clew.workloads.active_workloads import list_active_workloads
from clew.workloads.backend import Backend
from clew.workloads.quotas import read_quota

_LOG = logging.getLogger("clew.server")
router = DocumentRouter(tags=["activities"])

Grouped = Annotated[Text, StringConstraints(max_length=300)]
_SHOWN = 8
"""Activities of each kind on the first page."""
_FAILED_DAYS = 7
_ACTIVE: tuple[ActivityState, ...] = ("running", "pending")
_ENDED_WELL: tuple[ActivityState, ...] = ("done", "succeeded")
_FAILED: tuple[ActivityState, ...] = ("failed", "broken")
_TELLING = ("accuracy", "acc", "auc", "f1", "r2", "loss", "rmse", "mse", "mae")
"""Parts of the names of metrics that say most, in this order."""


def _parse_filter(
    q: Annotated[
        str,
        Query(
            max_length=2000,
            pattern=r"^[^\x00]*$",
            description="Words of the name, command, git commit, tags or notes; `state:failed`,"
            ' `tag:x`, `name:"a b"`, `type:run`, `kind:x`, `agent:x`, `experiment:x`,'
            " `made:elsewhere`; `metrics.acc > 0.9`, `params.lr = 0.1`, `seconds < 60`.",
        ),
    ] = "",
    state: Annotated[list[ActivityState] | None, Query(description="Any of these.")] = None,
    types: Annotated[
        list[ActivityType] | None,
        Query(alias="type", description="Any of these; executions of tasks only if named."),
    ] = None,
    kind: Annotated[list[Text] | None, Query(max_length=10)] = None,
    tag: Annotated[list[Text] | None, Query(max_length=10, description="All of these.")] = None,
    experiment: Annotated[Text | None, Query(description="The id of an experiment.")] = None,
    pipeline: Annotated[Text | None, Query(description="Runs of a pipeline, by its id.")] = None,
    schedule: Annotated[Text | None, Query(description="Runs of a schedule, by its id.")] = None,
    since: Since | None = None,
    archived: Annotated[bool, Query(description="Include archived runs.")] = False,
    by: Annotated[Grouped | None, Query(description="Only a group of this grouping.")] = None,
    group: Annotated[
        Text | None,
        Query(description="The key of the group; without it, those that are in no other group."),
    ] = None,
) -> Conditions:
    return parse_conditions(
        q,
        states=state or (),
        types=types or (),
        kinds=kind or (),
        tags=tag or (),
        experiment=experiment,
        pipeline=pipeline,
        schedule=schedule,
        since=parse_time(since) if since else None,
        archived=archived,
        more=[] if by is None else [is_in_group(by, group)],
    )


Filter = Annotated[Conditions, Depends(_parse_filter)]


@router.get("/activities")
def list_activities(
    request: Request,
    project: ProjectDep,
    conditions: Filter,
    sort: Annotated[
        Text,
        Query(
            max_length=300,
            description="`started`, `ended`, `seconds`, `name`, `state`, `type`, `kind`, `agent`,"
            " `experiment`, `metrics.NAME` or `params.NAME`.",
        ),
    ] = "started",
    order: Order = "desc",
    limit: Limit = 100,
    after: Annotated[
        str | None, Query(pattern=r"^[A-Za-z0-9_-]{1,3000}$", description="`next` of a page.")
    ] = None,
    offset: Annotated[
        int, Query(ge=0, le=10_000_000, description="How many to skip, for a table.")
    ] = 0,
) -> ActivityPage:
    """Executions and pipeline runs that meet all conditions. Those without a value to sort by come
    last."""
    sorting = parse_sorting(sort, order)
    unmeasured = _refresh(request, project)
    graph = project.graph
    page = select_activities(graph, conditions, sorting, limit=limit, after=after, offset=offset)
    parameters, metrics = list_names(graph)
    return ActivityPage(
        activities=tuple(page.activities),
        next=page.next,
        total=count_activities(graph, conditions) if after is None else None,
        parameters=parameters,
        metrics=metrics,
        unmeasured=unmeasured,
    )


@router.get("/activities/groups")
def list_groups(
    request: Request,
    project: ProjectDep,
    conditions: Filter,
    into: Annotated[
        Grouped,
        Query(
            description="`name`, `state`, `type`, `kind`, `agent`, `git`, `experiment`, `tag` or"
            " `params.NAME`.",
            examples=["git"],
        ),
    ],
    metric: Annotated[
        list[Text] | None, Query(max_length=20, description="Metrics to give the range of.")
    ] = None,
) -> ActivityGroups:
    """Groups of the activities that meet all conditions. `activities` with `by` and `group` lists
    those of one group."""
    grouping = parse_grouping(project.graph, into)
    _refresh(request, project)
    return group_activities(project.graph, conditions, grouping, metrics=metric or ())


@router.get("/comparison")
def compare(
    project: ProjectDep,
    ids: Annotated[
        list[Text],
        Query(
            alias="id",
            min_length=2,
            max_length=10,
            description="Executions and runs.",
            examples=[["e1", "e2"]],
        ),
    ],
) -> ActivityComparison:
    """Two to ten executions or runs side by side."""
    return compare_activities(project, ids)


@router.get("/overview")
def get_overview(
    request: Request,
    service: ServiceDep,
    project: ProjectDep,
    namespace: Annotated[
        str | None, Query(max_length=63, description="Of the quota; default: the usual one.")
    ] = None,
) -> Overview:
    """The content of the first page."""
    _refresh(request, project)
    graph = project.graph
    week_ago = datetime.now(UTC) - timedelta(days=_FAILED_DAYS)
    newest = parse_sorting("started", "desc")

    def select(states: tuple[ActivityState, ...], since: datetime | None) -> list[Activity]:
        conditions = parse_conditions(states=states, since=since)
        return select_activities(graph, conditions, newest, limit=_SHOWN).activities

    storage: StorageMeter = request.app.state.storage
    by_state = count_by_state(graph)

    def count(kind: str | None = None, states: tuple[str, ...] = ()) -> int:
        return sum(
            number
            for (one, state), number in by_state.items()
            if kind in (None, one) and (not states or state in states)
        )

    return Overview(
        running=tuple(select(_ACTIVE, None)),
        failed=tuple(select(_FAILED, week_ago)),
        recent=tuple(
            Result(**structs.asdict(activity), main_metric=find_main_metric(activity.metrics))
            for activity in select(_ENDED_WELL, None)
        ),
        storage=storage.measure(),
        quota=_find_quota(service.backend, namespace),
        workloads=_find_workloads(service, namespace),
        counts=Counts(
            executions=count("execution"),
            runs=count("run"),
            running=count(states=_ACTIVE),
            failed=count(states=_FAILED),
        ),
    )


def _find_quota(backend: Backend | None, namespace: str | None) -> Quota | None:
    """None also if the cluster does not answer: the rest of the page is there nevertheless."""
    if backend is None:
        return None
    try:
        place = namespace or backend.namespace
        return read_quota(place, backend.list("ResourceQuota", place))
    except ClewError as error:
        _LOG.warning("cannot read the quota: %s", error)
        return None


def _find_workloads(service: Service, namespace: str | None) -> tuple[ActiveWorkload, ...]:
    """None also if the cluster does not answer."""
    backend = service.backend
    if backend is None:
        return ()
    try:
        place = namespace or backend.namespace
        return list_active_workloads(backend, place, service.spawner.defaults)
    except ClewError as error:
        _LOG.warning("cannot list notebooks and TensorBoards: %s", error)
        return ()


def find_main_metric(metrics: Mapping[str, float | None]) -> MainMetric | None:
    """The metric with the most telling name; else the first one."""
    for part in _TELLING:
        for name, value in metrics.items():
            if part in name.lower():
                return MainMetric(name=name, value=value)
    return next((MainMetric(name=name, value=value) for name, value in metrics.items()), None)


def _refresh(request: Request, project: LocalProject) -> int:
    index: ActivityIndex = request.app.state.activity_index
    return index.refresh(project)
