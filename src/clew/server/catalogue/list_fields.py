"""The tables of the lists, and the fields by which each can be filtered and sorted.

The names are Kubeflow's. The state of a run is computed as in `kfp.runs`: a run being canceled is
CANCELING, a canceled one is FAILED.
"""

from clew.pipelines.runs import run_queue
from clew.server.catalogue.list_pages import Field, Table
from clew.server.catalogue.pipelines import experiments, pipelines, schedules, versions

_CREATED = Field("created", "moment")
_STORAGE_STATE = Field("CASE archived WHEN 1 THEN 'ARCHIVED' ELSE 'AVAILABLE' END")
_STATE = Field(
    "CASE state WHEN 'queued' THEN 'PENDING' WHEN 'succeeded' THEN 'SUCCEEDED'"
    " WHEN 'running' THEN CASE stop WHEN 1 THEN 'CANCELING' ELSE 'RUNNING' END ELSE 'FAILED' END"
)
_STATUS = Field("CASE enabled WHEN 1 THEN 'ENABLED' ELSE 'DISABLED' END")
_COMMON_FIELDS = {
    "id": Field("id"),
    "description": Field("description"),
    "created_at": _CREATED,
    "namespace": Field("SUBSTR(id, 1, 0)"),  # empty; PostgreSQL cannot sort by a constant
}
_PIPELINE_FIELDS = {
    "name": Field("name"),
    "display_name": Field("display_name"),
    "tags": Field("tags", "pairs"),
}
_NAME_FIELDS = {"name": Field("name"), "display_name": Field("name")}

EXPERIMENTS = Table(
    "experiment",
    experiments.COLUMNS,
    {
        **_COMMON_FIELDS,
        **_NAME_FIELDS,
        "experiment_id": Field("id"),
        "last_run_created_at": Field("last_run", "moment", optional=True),
        "storage_state": _STORAGE_STATE,
    },
)
PIPELINES = Table(
    "pipeline",
    pipelines.COLUMNS,
    {**_COMMON_FIELDS, **_PIPELINE_FIELDS, "pipeline_id": Field("id")},
)
VERSIONS = Table(
    "pipeline_version",
    versions.COLUMNS,
    {
        **_COMMON_FIELDS,
        **_PIPELINE_FIELDS,
        "pipeline_version_id": Field("id"),
        "pipeline_id": Field("pipeline"),
    },
)
RUNS = Table(
    "run_request",
    run_queue.COLUMNS,
    {
        **_COMMON_FIELDS,
        **_NAME_FIELDS,
        "run_id": Field("id"),
        "experiment_id": Field("experiment"),
        "recurring_run_id": Field("COALESCE(schedule, '')"),
        "pipeline_id": Field("COALESCE(pipeline, '')"),
        "pipeline_version_id": Field("COALESCE(version, '')"),
        "scheduled_at": Field("scheduled", "moment", optional=True),
        "finished_at": Field("finished", "moment", optional=True),
        "state": _STATE,
        "status": _STATE,
        "storage_state": _STORAGE_STATE,
    },
    where=run_queue.VISIBLE,
)
SCHEDULES = Table(
    "schedule",
    schedules.COLUMNS,
    {
        **_COMMON_FIELDS,
        **_NAME_FIELDS,
        "recurring_run_id": Field("id"),
        "experiment_id": Field("experiment"),
        "updated_at": Field("updated", "moment"),
        "status": _STATUS,
    },
)
